select request_digest, response, etag, location
from ticketflow.idempotency_keys
where tenant_id = $1 and idempotency_key = $2
