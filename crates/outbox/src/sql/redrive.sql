-- Parked events of locked lanes, pending again, due one after the other. They stay held: a due hold
-- lets its head go, feeding lets go what waits behind, and delayed ones are let go when due. One
-- whose aggregate has no hold gets one, so that its successors stay behind it.
with redriven as materialized (
  update ticketflow.outbox_events as e
  set state = 'pending', held = true, attempts = 0, publish_tries = 0, first_refused_at = null,
    available_at = clock_timestamp()
      + make_interval(secs => $6::float8 * (wanted.place - 1) / cardinality($1::uuid[]))
  from unnest($1::uuid[], $2::text[], $3::text[]) with ordinality
    as wanted (event_id, tenant_id, source, place)
  where e.event_id = wanted.event_id and e.tenant_id = wanted.tenant_id
    and e.source = wanted.source
    and e.event_id >= $4::uuid and e.event_id <= $5::uuid
    and e.state = 'parked'
  returning e.event_id, e.tenant_id, e.source, e.aggregate_type, e.aggregate_id, e.lane,
    e.position, e.version, e.available_at
),
due as (
  insert into ticketflow.outbox_holds as h
    (tenant_id, aggregate_type, aggregate_id, lane, head_position, until, reason)
  select distinct on (tenant_id, aggregate_type, aggregate_id)
    tenant_id, aggregate_type, aggregate_id, lane, position, available_at, 'redriven'
  from redriven
  where version is not null
  order by tenant_id, aggregate_type, aggregate_id, position
  on conflict (tenant_id, aggregate_type, aggregate_id) do update
  set until = excluded.until, reason = excluded.reason
  where h.head_position = excluded.head_position
)
select event_id, tenant_id, source
from redriven
order by position
