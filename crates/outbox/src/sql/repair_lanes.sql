-- The lanes in which an event is held without a hold.
select distinct e.tenant_id, e.lane
from ticketflow.outbox_events as e
left join ticketflow.outbox_holds as h on h.tenant_id = e.tenant_id
  and h.aggregate_type = e.aggregate_type and h.aggregate_id = e.aggregate_id
where e.state = 'pending' and e.held and e.version is not null and h.tenant_id is null
