-- The rows that fit now that the head has moved become due at once.
with fitting as materialized (
  select waiting.delivery_id
  from unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
    as given (tenant_id, aggregate_type, aggregate_id, version)
  join ticketflow.deferred_deliveries as waiting
    on waiting.effect_name = $5::text and waiting.tenant_id = given.tenant_id
    and waiting.aggregate_type = given.aggregate_type
    and waiting.aggregate_id = given.aggregate_id
    and waiting.previous_version = given.version
  where waiting.applicable and waiting.state = 'waiting'
  order by waiting.delivery_id
  for update of waiting
)
update ticketflow.deferred_deliveries as waiting
set next_attempt_at = clock_timestamp(), changed_at = clock_timestamp()
from fitting
where waiting.delivery_id = fitting.delivery_id
