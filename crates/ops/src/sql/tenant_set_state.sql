update ticketflow.tenants as t
set state = $2::text, updated_at = clock_timestamp()
from (
  select tenant_id, state from ticketflow.tenants where tenant_id = $1::text for update
) as before
where t.tenant_id = before.tenant_id
returning before.state
