select t.tenant_id::text as tenant, t.pool::text as pool, t.state, t.rate_per_second, t.rate_burst,
  (
    select count(*) from ticketflow.tenant_keys as k
    where k.tenant_id = t.tenant_id and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > clock_timestamp())
  ) as live_keys,
  t.created_at
from ticketflow.tenants as t
order by t.tenant_id
