select 'problem' as severity,
  format('the oldest due event of pool %s waits since %s s', t.pool,
    round(extract(epoch from clock_timestamp() - min(greatest(e.recorded_at, e.available_at))))) as finding,
  'is a relay of the pool running and ready? see its /readyz and `ticketflow status`' as remedy
from ticketflow.outbox_events as e
join ticketflow.tenants as t on t.tenant_id = e.tenant_id and t.state = 'active'
where e.state = 'pending' and not e.held
  and isfinite(e.recorded_at) and (e.available_at is null or e.available_at <= clock_timestamp())
group by t.pool
having min(greatest(e.recorded_at, e.available_at))
  < clock_timestamp() - make_interval(secs => $1::float8)
