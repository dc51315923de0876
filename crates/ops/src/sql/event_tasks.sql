select b.task_id, b.tenant_id::text as tenant, b.task_type::text as task_type, b.status, b.attempts,
  b.next_attempt_at, b.delivered_at, b.last_error
from ticketflow.business_tasks as b
where b.tenant_id in (
    select tenant_id from ticketflow.outbox_events where event_id = $1::uuid
    union
    select tenant_id from ticketflow.effect_receipts where event_id = $1::uuid
  )
  and b.event_id = $1::uuid
order by b.created_at
