select digest, skipped
from ticketflow.effect_receipts
where event_id = $1 and tenant_id = $2::text and source = $3::text and effect_name = $4::text
