select left(encode(k.key_hash, 'hex'), 12) as key_id, k.label,
  case
    when k.revoked_at is not null then 'revoked'
    when k.expires_at <= clock_timestamp() then 'expired'
    else 'live'
  end as state,
  k.created_at, k.expires_at, k.revoked_at
from ticketflow.tenant_keys as k
where k.tenant_id = $1::text
order by k.created_at
