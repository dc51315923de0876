select q.pool::text as pool, q.effect::text as effect,
  case
    when q.ready_generation = q.generation then 'ready'
    when q.declared_generation = q.generation then 'replaying what it missed'
    else 'to be declared'
  end as state,
  q.paused,
  extract(epoch from clock_timestamp() - q.verified_at)::bigint as verified_seconds_ago
from ticketflow.effect_queues as q
order by q.pool, q.effect
