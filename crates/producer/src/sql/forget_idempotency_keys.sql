select ticketflow.forget_idempotency_keys(make_interval(secs => $1), $2)
