select event_id, tenant_id::text, source::text, effect_name::text, digest
from ticketflow.effect_receipts
