select pool::text from ticketflow.tenants where tenant_id = $1::text
