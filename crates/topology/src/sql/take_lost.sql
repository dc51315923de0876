-- One relay looks for lost messages of a queue that is ready, once in so many seconds.
update ticketflow.effect_queues
set generation_at = clock_timestamp()
where pool = $1::text and effect = $2::text and generation = $3
  and ready_generation = generation
  and generation_at <= clock_timestamp() - $4::float8 * interval '1 second'
returning generation
