select q.effect::text as effect, q.ready_generation = q.generation as ready
from ticketflow.effect_queues as q
where q.pool = $1::text
order by q.effect
