select e.tenant_id::text, e.source::text
from ticketflow.outbox_events as e
where e.event_id = $1::uuid and ($2::text is null or e.tenant_id = $2::text)
limit 2
