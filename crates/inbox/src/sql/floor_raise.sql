-- Up to the beginning of the first day that is kept, and never back.
with wanted as (
  select (clock_timestamp() at time zone 'UTC' - make_interval(secs => $1))::date as day
)
update ticketflow.receipt_floor
set changed_at = case when floor < ticketflow.uuid_v7_floor(wanted.day::timestamp at time zone 'UTC')
    then clock_timestamp() else changed_at end,
  floor = greatest(floor, ticketflow.uuid_v7_floor(wanted.day::timestamp at time zone 'UTC'))
from wanted
returning (ticketflow.uuid_v7_time(floor) at time zone 'UTC')::date as first_kept
