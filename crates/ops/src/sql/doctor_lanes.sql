select 'warning' as severity,
  format('lane %s of tenant %s ended %s claims in a row without a settle', l.lane, l.tenant_id,
    l.unsettled_claims) as finding,
  'a relay died with it; it is published one by one until one is settled' as remedy
from ticketflow.outbox_lanes as l
where l.unsettled_claims >= 2
union all
select 'problem', format('tenant %s has %s lanes, not 16', t.tenant_id, count(l.lane)),
  'report it as a bug; the missing ones are never claimed'
from ticketflow.tenants as t
left join ticketflow.outbox_lanes as l on l.tenant_id = t.tenant_id
group by t.tenant_id
having count(l.lane) <> 16
limit 20
