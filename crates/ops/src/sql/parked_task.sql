select b.task_id, b.status, b.tenant_id::text as tenant, b.ticket_id, b.event_id,
  b.source::text as source, b.task_type::text as task_type, b.parked_reason as reason,
  b.last_error, b.attempts, b.created_at, b.next_attempt_at, b.delivered_at, b.payload as body
from ticketflow.business_tasks as b
where b.task_id = $1::uuid
limit 1
