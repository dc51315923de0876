-- The queues of some pools, or of all, and the generation each is in.
select pool, effect, generation, ready_generation = generation as ready
from ticketflow.effect_queues
where $1::text[] is null or pool = any($1)
order by pool, effect
