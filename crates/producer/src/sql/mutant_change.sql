-- Only for a planted bug: half a change.
update ticketflow.tickets set version = version + 1 where tenant_id = $1 and ticket_id = $2
