select d.effect_name::text as effect, d.state, count(*) as deliveries,
  max(d.attempts) as most_attempts, min(d.received_at) as oldest, min(d.next_attempt_at) as next_due
from ticketflow.deferred_deliveries as d
group by d.effect_name, d.state
order by d.effect_name, d.state
