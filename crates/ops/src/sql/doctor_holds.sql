select 'problem' as severity,
  format('the hold of %s %s of tenant %s is due since %s s', h.aggregate_type, h.aggregate_id,
    h.tenant_id, round(extract(epoch from clock_timestamp() - h.until))) as finding,
  'is a relay of the tenant''s pool running?' as remedy
from ticketflow.outbox_holds as h
join ticketflow.tenants as t on t.tenant_id = h.tenant_id and t.state = 'active'
where h.until < clock_timestamp() - interval '1 minute' and isfinite(h.until)
union all
select 'warning',
  format('%s events are parked, %s aggregates wait behind one', count(*),
    (select count(*) from ticketflow.outbox_holds where until is null)),
  'see `ticketflow parked list`, then `redrive` or `skip`'
from ticketflow.outbox_events
where state = 'parked'
having count(*) > 0
limit 20
