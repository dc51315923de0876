-- It must still be there, unchanged and due.
select delivery_id
from ticketflow.deferred_deliveries
where delivery_id = $1 and changed_at = $2::text::timestamptz and state <> 'parked'
  and next_attempt_at <= clock_timestamp()
for update
