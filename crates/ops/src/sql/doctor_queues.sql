select 'problem' as severity,
  format('pool %s has tenants but no effects: its events reach nobody', t.pool) as finding,
  format('add one: `ticketflow effect add … --pool %s`', t.pool) as remedy
from ticketflow.tenants as t
where not exists (select from ticketflow.effect_queues as q where q.pool = t.pool)
group by t.pool
union all
select 'problem',
  format('queue ticketflow.%s.%s is not ready since %s s: nothing is published to the pool', q.pool,
    q.effect, round(extract(epoch from clock_timestamp() - q.generation_at))),
  format('run `ticketflow topology --pool %s`', q.pool)
from ticketflow.effect_queues as q
where q.ready_generation < q.generation
  and q.generation_at < clock_timestamp() - interval '1 minute'
  and exists (select from ticketflow.tenants as t where t.pool = q.pool)
union all
select 'warning',
  format('queue ticketflow.%s.%s was last verified %s s ago', q.pool, q.effect,
    round(extract(epoch from clock_timestamp() - q.verified_at))),
  format('start a relay: `relay --pool %s`', q.pool)
from ticketflow.effect_queues as q
where q.verified_at < clock_timestamp() - interval '1 minute'
  and exists (select from ticketflow.tenants as t where t.pool = q.pool)
union all
select 'warning', format('no tenant is in pool %s', q.pool),
  format('if nobody means to use it, end its processes and run `ticketflow pool remove %s`', q.pool)
from ticketflow.effect_queues as q
where q.pool <> 'shared'
  and not exists (select from ticketflow.tenants as t where t.pool = q.pool)
group by q.pool
union all
select 'note', format('effect %s is paused in pool %s', q.effect, q.pool),
  format('resume it: `ticketflow effect resume %s --pool %s`', q.effect, q.pool)
from ticketflow.effect_queues as q
where q.paused
