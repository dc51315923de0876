select ticketflow.drop_partition($1::text, $2::date)
