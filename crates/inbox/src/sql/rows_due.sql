-- Without a lock: whoever tries one locks receipt, head and row in the one order and looks again.
select due.delivery_id, due.effect_name, due.state, due.changed_at::text
from ticketflow.deferred_deliveries as due
where due.state <> 'parked' and due.next_attempt_at <= clock_timestamp()
  and due.effect_name = any($1::text[])
  and (due.lease_token is null or due.leased_until <= clock_timestamp())
  and not exists (
    select from ticketflow.effect_queues as queue
    where queue.pool = due.pool and queue.effect = due.effect_name and queue.paused)
order by due.next_attempt_at
limit $2
