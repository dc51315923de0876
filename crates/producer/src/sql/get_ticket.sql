select ticketflow.ticket_json(t) as ticket, t.version
from ticketflow.tickets as t
where t.tenant_id = $1 and t.ticket_id = $2
