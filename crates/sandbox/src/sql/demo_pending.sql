select e.state = 'pending' as pending, l.leased_by
from ticketflow.outbox_events e
join ticketflow.outbox_lanes l using (tenant_id, lane)
where e.event_id = $1
