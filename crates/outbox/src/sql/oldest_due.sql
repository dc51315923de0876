-- How long the oldest claimable event waits: the first one of each lane of active tenants, in these
-- pools or all, is looked at. Delayed, held and parked events and paused tenants do not count.
with recursive walk (tenant_id, lane, step) as (
  select ''::text collate "C", -1::smallint, 0
  union all
  select next.tenant_id, next.lane, walk.step + 1
  from walk
  cross join lateral (
    select e.tenant_id::text, e.lane::smallint
    from ticketflow.outbox_events as e
    where e.state = 'pending' and not e.held and (e.tenant_id, e.lane) > (walk.tenant_id, walk.lane)
    order by e.tenant_id, e.lane
    limit 1
  ) as next
  where walk.step < $2
)
select max(case when isfinite(oldest.recorded_at)
  then extract(epoch from clock_timestamp() - oldest.recorded_at) end)::float8 as seconds
from walk
join ticketflow.tenants as t on t.tenant_id = walk.tenant_id
cross join lateral (
  select greatest(e.recorded_at, e.available_at) as recorded_at
  from ticketflow.outbox_events as e
  where e.tenant_id = walk.tenant_id and e.lane = walk.lane and e.state = 'pending' and not e.held
  order by e.position
  limit 1
) as oldest
where walk.step > 0 and t.state = 'active' and ($1::text[] is null or t.pool = any($1))
