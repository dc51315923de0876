-- An event and whether it heads its aggregate's hold, waiting for a person or for another try.
select e.lane, e.state, e.aggregate_type, e.aggregate_id, e.position,
  e.held and h.head_position is not distinct from e.position as is_head
from ticketflow.outbox_events as e
left join ticketflow.outbox_holds as h on h.tenant_id = e.tenant_id
  and h.aggregate_type = e.aggregate_type and h.aggregate_id = e.aggregate_id
where e.event_id = $1 and e.tenant_id = $2 and e.source = $3
