select t.tenant_id::text as tenant, t.pool::text as pool, t.updated_at as since
from ticketflow.tenants as t
where t.state = 'paused'
order by t.tenant_id
