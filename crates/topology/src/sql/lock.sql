select generation
from ticketflow.effect_queues
where pool = $1::text and effect = $2::text
for update
