update ticketflow.deferred_deliveries
set state = $2, reason = $3, detail = case when $4 = '' then detail else $4 end,
  applicable = $5, attempts = $6,
  next_attempt_at = clock_timestamp() + make_interval(secs => $7),
  waiting_since = case when $2 = 'waiting' then
    case when $8 then clock_timestamp() else coalesce(waiting_since, clock_timestamp()) end end,
  lease_token = null, leased_by = null, leased_until = null, changed_at = clock_timestamp()
where delivery_id = $1
