select ticketflow.ticket_json(t) as ticket, t.ticket_id
from ticketflow.tickets as t
where t.tenant_id = $1
  and ($2::text is null or t.status = $2)
  and ($3::uuid is null or t.ticket_id < $3)
order by t.ticket_id desc
limit $4
