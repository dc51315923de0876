-- One event of a leased lane, if it can still be claimed.
select e.event_id, e.position, e.tenant_id, e.source, e.aggregate_type, e.aggregate_id, e.version,
  e.previous_version, e.lane, e.event_type, e.content_type, e.payload, e.headers, e.trace_context,
  e.occurred_at, 1::bigint as place, t.pool,
  exists (
    select from ticketflow.outbox_holds as h where h.tenant_id = e.tenant_id and h.lane = e.lane
  ) as has_holds,
  false as is_blocked, e.attempts,
  case when isfinite(e.recorded_at)
    then extract(epoch from clock_timestamp() - e.recorded_at) else 0 end::float8 as age,
  case when isfinite(e.first_refused_at)
    then extract(epoch from clock_timestamp() - e.first_refused_at) end::float8 as refused_for
from ticketflow.outbox_events as e
join ticketflow.tenants as t on t.tenant_id = e.tenant_id
where e.event_id = $1 and e.tenant_id = $2 and e.source = $3
  and e.state = 'pending' and not e.held
  and t.pool = any($4::text[]) and t.state = 'active'
  and not exists (
    select from ticketflow.outbox_holds as h
    where e.version is not null and h.tenant_id = e.tenant_id
      and h.aggregate_type = e.aggregate_type and h.aggregate_id = e.aggregate_id
      and h.head_position < e.position)
