select ticketflow.make_partition(
  'effect_receipts', (clock_timestamp() at time zone 'UTC')::date + $1::integer) as made
