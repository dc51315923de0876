insert into ticketflow.business_tasks (
  task_id, tenant_id, ticket_id, event_id, source, task_type, payload)
select given.task_id, given.tenant_id, given.ticket_id, given.event_id, given.source,
  given.task_type, given.payload
from unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::bytea[])
  as given (task_id, tenant_id, ticket_id, event_id, source, task_type, payload)
