select q.pool::text as pool, q.effect::text as effect, q.event_types, q.paused,
  q.ready_generation = q.generation as ready,
  q.generation, q.declared_generation, q.ready_generation, q.verified_at
from ticketflow.effect_queues as q
order by q.pool, q.effect
