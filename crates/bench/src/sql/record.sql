-- One event, recorded as anybody would.
select ticketflow.record_event($1, 'ticket', $2, $3, $4::bytea, event_id => $5)
