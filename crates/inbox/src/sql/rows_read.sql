select pool, properties, body, attempts, digest
from ticketflow.deferred_deliveries
where delivery_id = $1
