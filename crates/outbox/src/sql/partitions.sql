-- The partitions of the outbox with their days, and today's, oldest first.
select name, (day - (clock_timestamp() at time zone 'UTC')::date)::integer as days_from_today
from ticketflow.partitions_of('outbox_events')
order by day
