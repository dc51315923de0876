-- The first recorded events, to be published raw.
select event_id, tenant_id, source, aggregate_type, aggregate_id, version, previous_version,
  event_type, content_type, payload, occurred_at
from ticketflow.outbox_events
where state = 'pending'
order by position
limit $1
