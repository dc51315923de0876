update ticketflow.outbox_lanes
set lease_token = null, leased_by = null, leased_until = null
where tenant_id = $1::text and lease_token = $2::uuid
