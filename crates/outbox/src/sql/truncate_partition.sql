-- Empties the partition of a day, counted from today (UTC). False if something in it still waits.
select ticketflow.truncate_partition('outbox_events', (clock_timestamp() at time zone 'UTC')::date + $1::integer)
