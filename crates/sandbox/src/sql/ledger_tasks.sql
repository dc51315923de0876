select event_id, tenant_id::text, source::text, ticket_id::text
from ticketflow.business_tasks
