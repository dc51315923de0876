-- One task by its id, which no two tenants share.
select b.tenant_id::text, b.task_id, b.ticket_id, b.event_id, b.task_type::text, b.status::text,
  b.parked_reason::text, b.attempts, b.last_error, b.created_at
from ticketflow.business_tasks as b
where b.task_id = $1::uuid
order by b.tenant_id
limit 1
