-- Parked deliveries round again, due one after the other. Only rows are locked, in key order, and
-- each is looked at again once it is.
with parked as materialized (
  select d.delivery_id
  from ticketflow.deferred_deliveries as d
  where d.delivery_id = any($1::bigint[]) and d.state = 'parked' and d.applicable
  order by d.delivery_id
  for update
),
placed as materialized (
  select delivery_id, row_number() over (order by delivery_id) - 1 as place,
    count(*) over () as deliveries
  from parked
)
update ticketflow.deferred_deliveries as d
set state = case when d.reason = 'kills' then 'suspect' else 'deferred' end,
  reason = case when d.reason = 'kills' then 'suspect' else 'refused' end,
  attempts = 0, kills = 0, waiting_since = null,
  lease_token = null, leased_by = null, leased_until = null,
  next_attempt_at = clock_timestamp()
    + make_interval(secs => $2::float8 * placed.place / placed.deliveries),
  changed_at = clock_timestamp()
from placed
where d.delivery_id = placed.delivery_id
returning d.delivery_id
