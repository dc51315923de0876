select event_id, tenant_id::text, source::text, aggregate_type || '/' || aggregate_id, version,
  event_type::text, state,
  coalesce(pool, (select t.pool from ticketflow.tenants t where t.tenant_id = e.tenant_id))::text,
  ticketflow.event_digest(event_id, tenant_id, source, aggregate_type, aggregate_id, version,
    event_type, content_type, payload)
from ticketflow.outbox_events e
