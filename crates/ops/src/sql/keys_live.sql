select count(*)
from ticketflow.tenant_keys
where tenant_id = $1::text and revoked_at is null
  and (expires_at is null or expires_at > clock_timestamp())
