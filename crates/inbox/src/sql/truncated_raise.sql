update ticketflow.receipt_floor
set truncated = greatest(truncated,
    least(floor, ticketflow.uuid_v7_floor($1::date::timestamp at time zone 'UTC'))),
  changed_at = clock_timestamp()
where truncated < least(floor, ticketflow.uuid_v7_floor($1::date::timestamp at time zone 'UTC'))
