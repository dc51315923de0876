-- Whoever refills a queue says so again and again; when nobody did for so many seconds, it is free.
update ticketflow.effect_queues
set generation_at = clock_timestamp()
where pool = $1::text and effect = $2::text and generation = $3
  and declared_generation = generation and ready_generation < generation
  and generation_at <= clock_timestamp() - $4::float8 * interval '1 second'
returning generation
