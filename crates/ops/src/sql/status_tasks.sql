select b.status, count(*) as tasks, min(b.created_at) as oldest
from ticketflow.business_tasks as b
where b.status not in ('delivered', 'skipped')
group by b.status
order by b.status
