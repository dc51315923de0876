update ticketflow.effect_queues
set paused = $3::boolean
where effect = $2::text and ($1::text is null or pool = $1::text)
returning pool::text
