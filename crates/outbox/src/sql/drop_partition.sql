-- Drops the empty partition of a day, counted from today (UTC). False if it is not empty.
select ticketflow.drop_partition('outbox_events', (clock_timestamp() at time zone 'UTC')::date + $1::integer)
