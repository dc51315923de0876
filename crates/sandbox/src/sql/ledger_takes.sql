select pool::text, effect::text, event_types
from ticketflow.effect_queues
