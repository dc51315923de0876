-- The try came to nothing, but its process lives: nobody is to count a kill.
update ticketflow.deferred_deliveries
set lease_token = null, leased_by = null, leased_until = null, changed_at = clock_timestamp(),
  next_attempt_at = clock_timestamp() + make_interval(secs => $3)
where delivery_id = $1 and lease_token = $2 and state = 'suspect'
