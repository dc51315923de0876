-- Under the lock of lock.sql, which has shown whose generation it is.
update ticketflow.effect_queues
set declared_generation = generation, generation_at = clock_timestamp()
where pool = $1::text and effect = $2::text
