-- Lanes with claimable rows, from a place on: one probe of the claim index for each. A tenant that
-- is not to be served is jumped over, to the next one that is, so that neither many such tenants
-- nor many idle ones cost more than the others.
with recursive walk (tenant_id, lane, found, is_free, step) as (
  select $2::text collate "C", $3::smallint, 0, false, 0
  union all
  select
    eligible.tenant_id,
    (case when eligible.tenant_id = next.tenant_id then next.lane else -1 end)::smallint,
    walk.found + coalesce(owner.is_free, false)::integer,
    coalesce(owner.is_free, false),
    walk.step + 1
  from walk
  cross join lateral (
    select e.tenant_id::text, e.lane
    from ticketflow.outbox_events as e
    where e.state = 'pending' and not e.held and (e.tenant_id, e.lane) > (walk.tenant_id, walk.lane)
      and e.event_id <= $6
    order by e.tenant_id, e.lane
    limit 1
  ) as next
  cross join lateral (
    select served.tenant_id
    from unnest($1::text[]) as pools (pool)
    cross join lateral (
      select t.tenant_id::text
      from ticketflow.tenants as t
      where t.pool = pools.pool and t.state = 'active' and t.tenant_id >= next.tenant_id
      order by t.tenant_id
      limit 1
    ) as served
    order by served.tenant_id
    limit 1
  ) as eligible
  left join lateral (
    select l.leased_until is null or l.leased_until < clock_timestamp() as is_free
    from ticketflow.outbox_lanes as l
    where eligible.tenant_id = next.tenant_id and l.tenant_id = next.tenant_id and l.lane = next.lane
  ) as owner on true
  where walk.step < $4 and walk.found < $5
)
select tenant_id, lane, is_free
from walk
where step > 0
order by step
