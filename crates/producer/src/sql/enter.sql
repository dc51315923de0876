select ticketflow.enter($1, $2)
