-- Days more than a day ago: nobody may record or receive for them any more. The dropping looks
-- whether they are empty.
select parent, day
from unnest(array['outbox_events', 'effect_receipts']) as parent
cross join lateral ticketflow.partitions_of(parent)
where day < (clock_timestamp() at time zone 'UTC')::date - 1
order by day, parent
