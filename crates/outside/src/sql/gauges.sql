-- What waits: per status the number of tasks and the age of the oldest that is due.
select b.status, count(*) as tasks,
  coalesce(extract(epoch from clock_timestamp() - min(b.next_attempt_at)
    filter (where t.state = 'active')), 0)::float8 as oldest_due_seconds
from ticketflow.business_tasks as b
join ticketflow.tenants as t using (tenant_id)
where b.status in ('pending', 'sending', 'unknown', 'parked')
  and (cardinality($1::text[]) = 0 or t.pool = any($1::text[]))
group by b.status
