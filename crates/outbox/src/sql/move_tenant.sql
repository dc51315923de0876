update ticketflow.tenants
set pool = $2::text, updated_at = clock_timestamp()
where tenant_id = $1::text
