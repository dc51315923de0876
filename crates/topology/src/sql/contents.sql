-- The events of some ids, with the columns that the outbox reads events by; the bounds let the
-- planner look into few partitions.
select event_id, position, tenant_id, source, aggregate_type, aggregate_id, version,
  previous_version, lane, event_type, content_type, payload, headers, trace_context, occurred_at
from ticketflow.outbox_events
where event_id = any($1::uuid[]) and event_id >= $2 and event_id <= $3
