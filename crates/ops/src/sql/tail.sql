select e.recorded_at, e.tenant_id::text as tenant, e.event_type::text as event_type,
  e.aggregate_type::text as aggregate_type, e.aggregate_id::text as aggregate_id, e.version,
  e.event_id, e.source::text as source, e.state
from ticketflow.outbox_events as e
-- By id first, which has an index: an id made more than a minute before it was recorded is not shown.
where e.event_id >= ticketflow.uuid_v7_floor(
    clock_timestamp() - interval '1 minute' - make_interval(secs => $3::float8))
  and e.recorded_at >= clock_timestamp() - make_interval(secs => $3::float8)
  and ($1::text is null or e.tenant_id = $1::text)
  and ($2::text is null or e.event_type = $2::text)
order by e.position
