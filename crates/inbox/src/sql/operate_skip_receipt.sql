-- The receipt of a parked delivery that is given up. A parallel apply of a copy is waited for.
insert into ticketflow.effect_receipts
  (event_id, tenant_id, source, effect_name, digest, skipped)
select d.event_id, d.tenant_id, d.source, d.effect_name, d.digest, true
from ticketflow.deferred_deliveries as d
where d.delivery_id = $1 and d.state = 'parked' and d.applicable
on conflict (event_id, tenant_id, source, effect_name) do nothing
returning event_id
