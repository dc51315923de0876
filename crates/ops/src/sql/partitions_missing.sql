-- Days without a partition of their own: 14 ahead, and those of which the default one has rows.
-- (Asked through the parent: ids of such a day can only be there.)
select parent, day
from unnest(array['outbox_events', 'effect_receipts']) as parent
cross join lateral (
  select (clock_timestamp() at time zone 'UTC')::date + ahead as day
  from generate_series(-90, 14) as ahead
) as wanted
where to_regclass('ticketflow.' || ticketflow.partition_name(parent, day)) is null
  and (
    day >= (clock_timestamp() at time zone 'UTC')::date
    or parent = 'outbox_events' and exists (
      select from ticketflow.outbox_events
      where event_id >= ticketflow.uuid_v7_floor(day::timestamp at time zone 'UTC')
        and event_id < ticketflow.uuid_v7_floor((day + 1)::timestamp at time zone 'UTC')
    )
  )
order by day, parent
