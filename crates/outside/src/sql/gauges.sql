-- What waits, in all pools, so that one without a process is seen too: per status the number of
-- tasks, counted up to 100,000, and once the age of the oldest that is due, one probe for a tenant.
with waiting as materialized (
  select b.status
  from ticketflow.business_tasks as b
  where b.status in ('pending', 'sending', 'unknown')
  order by b.tenant_id, b.next_attempt_at
  limit 100000
), parked as materialized (
  select b.status
  from ticketflow.business_tasks as b
  where b.status = 'parked'
  order by b.tenant_id, b.task_id
  limit 100000
), oldest as materialized (
  select min(first.next_attempt_at) as due
  from ticketflow.tenants as t
  cross join lateral (
    select b.next_attempt_at
    from ticketflow.business_tasks as b
    where b.tenant_id = t.tenant_id and b.status in ('pending', 'sending', 'unknown')
    order by b.next_attempt_at
    limit 1
  ) as first
  where t.state = 'active'
)
select status::text, count(*) as tasks, null::float8 as oldest_due_seconds
from (select status from waiting union all select status from parked) as counted
group by status
union all
select '', 0, greatest(extract(epoch from clock_timestamp() - due), 0)::float8
from oldest
where isfinite(due)
