select ticketflow.truncate_partition($1::text, $2::date)
