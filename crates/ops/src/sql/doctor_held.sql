-- Delayed events are held without a hold; any other one would wait for ever.
select 'problem' as severity,
  format('%s events of %s %s of tenant %s are held without a hold', count(*), e.aggregate_type,
    e.aggregate_id, e.tenant_id) as finding,
  'report it as a bug; `ticketflow doctor --repair` lets them go' as remedy
from ticketflow.outbox_events as e
left join ticketflow.outbox_holds as h on h.tenant_id = e.tenant_id
  and h.aggregate_type = e.aggregate_type and h.aggregate_id = e.aggregate_id
where e.state = 'pending' and e.held and e.version is not null and h.tenant_id is null
group by e.tenant_id, e.aggregate_type, e.aggregate_id
limit 20
