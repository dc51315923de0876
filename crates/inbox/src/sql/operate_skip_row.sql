delete from ticketflow.deferred_deliveries
where delivery_id = $1 and state = 'parked'
returning applicable, effect_name::text, tenant_id::text, aggregate_type::text,
  aggregate_id::text, previous_version, version
