select d.delivery_id as delivery, d.state, d.effect_name::text as effect, d.pool::text as pool,
  d.tenant_id::text as tenant, d.source::text as source, d.event_id, d.reason, d.detail,
  d.applicable, d.attempts, d.kills, d.received_at, d.changed_at, d.next_attempt_at,
  d.event_type::text as event_type, d.aggregate_type::text as aggregate_type,
  d.aggregate_id::text as aggregate_id, d.version, d.previous_version, d.routing_key, d.digest,
  d.properties, d.body
from ticketflow.deferred_deliveries as d
where d.delivery_id = $1::bigint
