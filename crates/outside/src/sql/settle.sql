-- Settles tasks that are still sending under the token they were claimed with; says which.
with settled as materialized (
  select *
  from unnest(
    $1::text[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[], $6::text[], $7::text[],
    $8::bigint[])
    as s (tenant_id, task_id, lease_token, status, wait_ms, parked_reason, last_error, given_back)
), held as materialized (
  select b.tenant_id, b.task_id
  from ticketflow.business_tasks as b
  join settled as s on s.tenant_id = b.tenant_id and s.task_id = b.task_id
  -- Written so that no index serves it: each row is found by its key.
  where (b.status = 'sending') is true and b.lease_token = s.lease_token
  order by b.tenant_id, b.task_id
  for update of b
)
update ticketflow.business_tasks as b
set status = s.status,
  attempts = b.attempts - s.given_back,
  next_attempt_at = clock_timestamp() + s.wait_ms * interval '1 millisecond',
  lease_token = null,
  leased_by = null,
  leased_until = null,
  parked_reason = s.parked_reason,
  last_error = case when s.status <> 'delivered' then coalesce(s.last_error, b.last_error) end,
  delivered_at = case when s.status = 'delivered' then clock_timestamp() end
from held
join settled as s using (tenant_id, task_id)
where b.tenant_id = held.tenant_id and b.task_id = held.task_id
returning b.task_id, case when isfinite(b.created_at)
  then extract(epoch from clock_timestamp() - b.created_at) else 0 end::float8 as age_seconds
