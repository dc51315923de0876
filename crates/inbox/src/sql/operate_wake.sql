-- What fits now that the head has moved becomes due at once.
with fitting as materialized (
  select d.delivery_id
  from ticketflow.deferred_deliveries as d
  where d.effect_name = $1::text and d.tenant_id = $2::text and d.aggregate_type = $3::text
    and d.aggregate_id = $4::text and d.previous_version = $5::bigint
    and d.applicable and d.state = 'waiting'
  order by d.delivery_id
  for update
)
update ticketflow.deferred_deliveries as d
set next_attempt_at = clock_timestamp(), changed_at = clock_timestamp()
from fitting
where d.delivery_id = fitting.delivery_id
