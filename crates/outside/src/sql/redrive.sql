-- Sends parked tasks round again, chosen as in parked.sql, spread over $6 milliseconds; written down
-- for each tenant with the actor $7 and the reason $8.
with chosen as materialized (
  select b.tenant_id, b.task_id, b.created_at
  from ticketflow.business_tasks as b
  where b.status = 'parked'
    and ($1::text is null or b.tenant_id = $1::text)
    and ($2::text is null or strpos(concat_ws(': ', b.parked_reason, b.last_error), $2::text) > 0)
    and ($3::uuid[] is null or b.task_id = any($3::uuid[]))
    and ($4::bigint is null or b.created_at <= clock_timestamp() - $4::bigint * interval '1 millisecond')
  order by b.created_at, b.task_id
  limit $5::bigint
), locked as materialized (
  -- Still parked: who waited here for another redrive finds its rows gone.
  select b.tenant_id, b.task_id, b.parked_reason, b.created_at
  from ticketflow.business_tasks as b
  join chosen as c on c.tenant_id = b.tenant_id and c.task_id = b.task_id
  where b.status = 'parked'
  order by b.tenant_id, b.task_id
  for update of b
), placed as materialized (
  select l.*, row_number() over (order by l.created_at, l.task_id) - 1 as place,
    count(*) over () as tasks
  from locked as l
), redriven as (
  update ticketflow.business_tasks as b
  set status = case when p.parked_reason = 'unknown' then 'unknown' else 'pending' end,
    parked_reason = null,
    attempts = 0,
    next_attempt_at = clock_timestamp()
      + p.place * $6::bigint / p.tasks * interval '1 millisecond'
  from placed as p
  where b.tenant_id = p.tenant_id and b.task_id = p.task_id
  returning b.tenant_id, b.task_id
), noted as (
  insert into ticketflow.operator_actions (actor, action, tenant_id, target, reason, result)
  select $7::text, 'redrive', r.tenant_id, jsonb_build_object('tasks', jsonb_agg(r.task_id)),
    $8::text, jsonb_build_object('redriven', count(*))
  from redriven as r
  group by r.tenant_id
)
select task_id from redriven
