select case when $2::text is null or t.status = $2 then ticketflow.ticket_json(t) end as ticket,
  found.ticket_id
from ticketflow.search_tickets($5, $2, $3, $4::bigint::integer) as found
left join ticketflow.tickets as t on t.tenant_id = $1 and t.ticket_id = found.ticket_id
order by found.ticket_id desc
