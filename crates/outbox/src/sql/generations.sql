-- The generations of some pools' queues, kept from changing to the end of the transaction.
select pool, effect, generation, ready_generation = generation as ready
from ticketflow.effect_queues
where pool = any($1::text[])
order by pool, effect
for share
