-- A key, and a rate that no bench reaches.
with rated as (
  update ticketflow.tenants set rate_per_second = 1000000, rate_burst = 1000000
  where tenant_id = $1::text returning tenant_id)
insert into ticketflow.tenant_keys (tenant_id, key_hash) select tenant_id, $2::bytea from rated
