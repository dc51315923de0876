select event_id, tenant_id::text, source::text, effect_name::text
from ticketflow.deferred_deliveries
where applicable
