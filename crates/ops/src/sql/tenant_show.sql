select t.tenant_id::text as tenant, t.pool::text as pool, t.state, t.rate_per_second, t.rate_burst,
  (
    select count(*) from ticketflow.outbox_events as e
    where e.tenant_id = t.tenant_id and e.state = 'pending' and not e.held
  ) as pending,
  (
    select count(*) from ticketflow.outbox_events as e
    where e.tenant_id = t.tenant_id and e.state = 'pending' and e.held
  ) as held_or_delayed,
  (
    select count(*) from ticketflow.outbox_events as e
    where e.tenant_id = t.tenant_id and e.state = 'parked'
  ) as parked_events,
  (
    select count(*) from ticketflow.deferred_deliveries as d
    where d.tenant_id = t.tenant_id and d.state <> 'parked'
  ) as deferred_deliveries,
  (
    select count(*) from ticketflow.deferred_deliveries as d
    where d.tenant_id = t.tenant_id and d.state = 'parked'
  ) as parked_deliveries,
  t.created_at, t.updated_at
from ticketflow.tenants as t
where t.tenant_id = $1::text
