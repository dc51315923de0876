update ticketflow.deferred_deliveries
set leased_until = clock_timestamp() + make_interval(secs => $3)
where delivery_id = $1 and lease_token = $2
