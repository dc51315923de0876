select event_id, tenant_id::text, lane::smallint from ticketflow.outbox_events
where event_id = any($1)
