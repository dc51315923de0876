-- The pools that tenants are in, or that have queues.
select pool::text as pool from ticketflow.tenants
union
select pool::text from ticketflow.effect_queues
order by pool
