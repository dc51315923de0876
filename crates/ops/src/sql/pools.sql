select pools.pool::text as pool,
  (select count(*) from ticketflow.tenants as t where t.pool = pools.pool) as tenants,
  (
    select array_agg(q.effect::text order by q.effect)
    from ticketflow.effect_queues as q
    where q.pool = pools.pool
  ) as effects,
  (
    select coalesce(bool_and(q.ready_generation = q.generation), false)
    from ticketflow.effect_queues as q
    where q.pool = pools.pool
  ) as ready
from (
  select pool from ticketflow.tenants
  union
  select pool from ticketflow.effect_queues
) as pools
order by pools.pool
