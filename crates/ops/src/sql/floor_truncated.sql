update ticketflow.receipt_floor
set truncated = $1::uuid, changed_at = clock_timestamp()
where truncated < $1::uuid and floor >= $1::uuid
