select
  coalesce((select extract(epoch from clock_timestamp() - min(next_attempt_at))
    from ticketflow.deferred_deliveries
    where state <> 'parked' and next_attempt_at <= clock_timestamp()
      and isfinite(next_attempt_at)), 0)::float8 as oldest_due,
  extract(epoch from clock_timestamp() - ticketflow.uuid_v7_time(floor))::float8 as window,
  (select count(*) from ticketflow.partitions_of('effect_receipts')
    where day >= (clock_timestamp() at time zone 'UTC')::date) as ahead
from ticketflow.receipt_floor
