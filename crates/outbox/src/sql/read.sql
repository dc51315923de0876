-- The due rows of leased lanes, breadth first, up to a number and a size. A later statement than
-- the leasing: in one, the snapshot would be older than the lock. Rows that wait for the head of
-- their aggregate come without their content, to be marked as held.
with lane as materialized (
  select wanted.place, wanted.tenant_id, wanted.lane, t.pool,
    exists (
      select from ticketflow.outbox_holds as h
      where h.tenant_id = wanted.tenant_id and h.lane = wanted.lane
    ) as has_holds
  from unnest($1::text[], $2::smallint[]) with ordinality as wanted (tenant_id, lane, place)
  join ticketflow.tenants as t on t.tenant_id = wanted.tenant_id
  where t.pool = any($3::text[]) and t.state = 'active'
),
met as materialized (
  select lane.place, lane.pool, lane.has_holds, e.*, blocked.by_hold is not null as is_blocked
  from lane
  cross join lateral (
    select row_number() over () as rank, row_of_lane.*
    from (
      select e.event_id, e.position, e.tenant_id, e.source, e.aggregate_type, e.aggregate_id,
        e.version, e.previous_version, e.lane, e.event_type, e.content_type, e.payload, e.headers,
        e.trace_context, e.occurred_at, e.recorded_at, e.attempts, e.first_refused_at
      from ticketflow.outbox_events as e
      where e.tenant_id = lane.tenant_id and e.lane = lane.lane
        and e.state = 'pending' and not e.held and e.event_id <= $7
      order by e.position
      limit $4
    ) as row_of_lane
  ) as e
  left join lateral (
    select true as by_hold
    from ticketflow.outbox_holds as h
    where lane.has_holds and e.version is not null
      and h.tenant_id = e.tenant_id and h.aggregate_type = e.aggregate_type
      and h.aggregate_id = e.aggregate_id and h.head_position < e.position
  ) as blocked on true
),
counted as (
  select met.*,
    row_number() over breadth as number,
    sum(octet_length(payload)) over breadth - octet_length(payload) as bytes_before
  from met
  where not is_blocked
  window breadth as (order by rank, place rows unbounded preceding)
)
select event_id, position, tenant_id, source, aggregate_type, aggregate_id, version,
  previous_version, lane, event_type, content_type, payload, headers, trace_context, occurred_at,
  place, pool, has_holds, is_blocked, attempts,
  case when isfinite(recorded_at)
    then extract(epoch from clock_timestamp() - recorded_at) else 0 end::float8 as age,
  case when isfinite(first_refused_at)
    then extract(epoch from clock_timestamp() - first_refused_at) end::float8 as refused_for
from (
  select *
  from counted
  where number <= $5 and bytes_before < $6
  order by number
) as taken
union all
select distinct on (place) null, null, null, null, null, null, null, null, null, null, null, null,
  null, null, null, place, pool, has_holds, true, null, null, null
from met
where is_blocked
