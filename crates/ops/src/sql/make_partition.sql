select ticketflow.make_partition($1::text, $2::date)
