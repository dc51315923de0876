-- The queues of a pool. Somebody is at work on one if a step of its making is not long past.
select pool::text as pool, effect::text as effect, event_types, generation, declared_generation,
  ready_generation,
  generation_at > clock_timestamp() - $2::float8 * interval '1 second' as at_work
from ticketflow.effect_queues
where pool = $1::text
order by effect
