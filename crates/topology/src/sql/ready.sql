update ticketflow.effect_queues
set ready_generation = generation, generation_at = clock_timestamp(),
  verified_at = clock_timestamp()
where pool = $1::text and effect = $2::text and generation = $3
  and declared_generation = generation
returning generation
