select $1::text as pool,
  (select count(*) from ticketflow.tenants where pool = $1::text) as tenants,
  (select count(*) from ticketflow.effect_queues where pool = $1::text) as effects,
  (
    select count(*) from ticketflow.deferred_deliveries
    where pool = $1::text and state <> 'parked'
  ) as waiting_deliveries,
  (
    select count(*) from ticketflow.deferred_deliveries
    where pool = $1::text and state = 'parked'
  ) as parked_deliveries
