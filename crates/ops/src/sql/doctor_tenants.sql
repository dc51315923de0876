select 'note' as severity, format('tenant %s is paused', t.tenant_id) as finding,
  format('resume it: `ticketflow tenant resume %s`', t.tenant_id) as remedy
from ticketflow.tenants as t
where t.state = 'paused'
limit 20
