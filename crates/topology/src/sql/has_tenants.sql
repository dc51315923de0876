select from ticketflow.tenants where pool = $1 limit 1
