select pool, effect from ticketflow.effect_queues where paused
