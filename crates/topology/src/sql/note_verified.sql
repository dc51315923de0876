-- Not by every relay at every look: a settle waits for this row's lock.
update ticketflow.effect_queues
set verified_at = clock_timestamp()
where pool = $1::text and ready_generation = generation
  and (verified_at is null or verified_at < clock_timestamp() - interval '2 seconds')
