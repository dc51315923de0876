-- Makes the partition of a day, counted from today (UTC). False if it is there.
select ticketflow.make_partition('outbox_events', (clock_timestamp() at time zone 'UTC')::date + $1::integer)
