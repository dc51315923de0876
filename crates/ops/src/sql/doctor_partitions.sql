select 'problem' as severity,
  format('%s has partitions for %s days ahead', parent, coalesce(ahead.days, 0)) as finding,
  'run `ticketflow retention`; is a relay doing its housekeeping?' as remedy
from unnest(array['outbox_events', 'effect_receipts']) as parent
cross join lateral (
  select max(day) - (clock_timestamp() at time zone 'UTC')::date as days
  from ticketflow.partitions_of(parent)
) as ahead
where coalesce(ahead.days, 0) < 3
union all
select 'warning', format('events of %s are in the default partition', day),
  'run `ticketflow retention`'
from (
  select (clock_timestamp() at time zone 'UTC')::date + ahead as day
  from generate_series(-90, 14) as ahead
) as wanted
where to_regclass('ticketflow.' || ticketflow.partition_name('outbox_events', day)) is null
  and exists (
    select from ticketflow.outbox_events
    where event_id >= ticketflow.uuid_v7_floor(day::timestamp at time zone 'UTC')
      and event_id < ticketflow.uuid_v7_floor((day + 1)::timestamp at time zone 'UTC')
  )
