select event_id, tenant_id::text, source::text, aggregate_type || '/' || aggregate_id, version
from ticketflow.audit_entries
order by entry_id
