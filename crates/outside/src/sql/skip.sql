-- Gives parked tasks up, chosen as in parked.sql; written down for each tenant with the actor $6
-- and the reason $7.
with chosen as materialized (
  select b.tenant_id, b.task_id
  from ticketflow.business_tasks as b
  where b.status = 'parked'
    and ($1::text is null or b.tenant_id = $1::text)
    and ($2::text is null or strpos(concat_ws(': ', b.parked_reason, b.last_error), $2::text) > 0)
    and ($3::uuid[] is null or b.task_id = any($3::uuid[]))
    and ($4::bigint is null or b.created_at <= clock_timestamp() - $4::bigint * interval '1 millisecond')
  order by b.created_at, b.task_id
  limit $5::bigint
), locked as materialized (
  -- Still parked: who waited here for a redrive finds its rows gone.
  select b.tenant_id, b.task_id
  from ticketflow.business_tasks as b
  join chosen as c on c.tenant_id = b.tenant_id and c.task_id = b.task_id
  where b.status = 'parked'
  order by b.tenant_id, b.task_id
  for update of b
), skipped as (
  update ticketflow.business_tasks as b
  set status = 'skipped', parked_reason = null
  from locked as l
  where b.tenant_id = l.tenant_id and b.task_id = l.task_id
  returning b.tenant_id, b.task_id
), noted as (
  insert into ticketflow.operator_actions (actor, action, tenant_id, target, reason, result)
  select $6::text, 'skip', s.tenant_id, jsonb_build_object('tasks', jsonb_agg(s.task_id)),
    $7::text, jsonb_build_object('skipped', count(*))
  from skipped as s
  group by s.tenant_id
)
select task_id from skipped
