select 'problem' as severity,
  format('%s deliveries of effect %s are due since %s s', count(*), d.effect_name,
    round(extract(epoch from clock_timestamp() - min(d.next_attempt_at)))) as finding,
  'is a consumer with this effect running?' as remedy
from ticketflow.deferred_deliveries as d
where d.state <> 'parked' and d.next_attempt_at < clock_timestamp() - interval '5 minutes'
  and isfinite(d.next_attempt_at)
group by d.effect_name
union all
select 'warning', format('%s deliveries of effect %s are parked', count(*), d.effect_name),
  'see `ticketflow parked list`, then `redrive` or `skip`'
from ticketflow.deferred_deliveries as d
where d.state = 'parked'
group by d.effect_name
union all
select 'problem',
  format('%s outside tasks are due since %s s', count(*),
    round(extract(epoch from clock_timestamp() - min(b.next_attempt_at)))),
  'is a consumer with a provider running?'
from ticketflow.business_tasks as b
where b.status in ('pending', 'sending', 'unknown')
  and b.next_attempt_at < clock_timestamp() - interval '5 minutes'
  and isfinite(b.next_attempt_at)
having count(*) > 0
union all
select 'warning', format('%s identities came with two contents', count(distinct c.event_id)),
  'see `ticketflow event ID`: a producer reuses ids'
from ticketflow.event_conflicts as c
having count(*) > 0
