-- Only from the generation that was looked at: of several who find a queue missing, one goes on.
update ticketflow.effect_queues
set generation = generation + 1, generation_at = clock_timestamp()
where pool = $1::text and effect = $2::text and generation = $3
returning generation
