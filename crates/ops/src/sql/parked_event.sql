select e.event_id, e.tenant_id::text as tenant, e.source::text as source, e.state,
  e.last_error as reason, e.attempts, e.first_refused_at, e.recorded_at,
  e.event_type::text as event_type, e.aggregate_type::text as aggregate_type,
  e.aggregate_id::text as aggregate_id, e.version, e.previous_version, e.lane::smallint as lane,
  e.position, e.content_type::text as content_type, e.headers, e.trace_context, e.payload as body
from ticketflow.outbox_events as e
where e.event_id = $1::uuid
order by e.state = 'parked' desc
limit 1
