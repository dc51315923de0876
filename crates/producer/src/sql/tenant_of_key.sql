select tenant_id, rate_per_second, rate_burst from ticketflow.tenant_of_key($1)
