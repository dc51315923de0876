-- The events of some ids; the bounds let the planner look into few partitions.
select event_id, position, tenant_id::text as tenant_id, source::text as source,
  aggregate_type::text as aggregate_type, aggregate_id::text as aggregate_id, version,
  previous_version, event_type::text as event_type, content_type::text as content_type, payload,
  headers, trace_context, occurred_at
from ticketflow.outbox_events
where event_id = any($1::uuid[]) and event_id >= $2 and event_id <= $3
