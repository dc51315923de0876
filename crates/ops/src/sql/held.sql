select h.tenant_id::text as tenant, h.aggregate_type::text as aggregate_type,
  h.aggregate_id::text as aggregate_id, h.reason, head.state as head_state,
  head.event_id as head_event, waiting.behind, h.until, h.since
from (
  select *
  from ticketflow.outbox_holds
  where $1::text is null or tenant_id = $1::text
  order by since
  limit $2::bigint
) as h
cross join lateral (
  select count(*) filter (where e.position > h.head_position) as behind
  from ticketflow.outbox_events as e
  where e.tenant_id = h.tenant_id and e.aggregate_type = h.aggregate_type
    and e.aggregate_id = h.aggregate_id
    and (e.state = 'parked' or (e.state = 'pending' and e.held))
    and e.version is not null
) as waiting
left join lateral (
  select e.event_id, e.state
  from ticketflow.outbox_events as e
  where e.tenant_id = h.tenant_id and e.aggregate_type = h.aggregate_type
    and e.aggregate_id = h.aggregate_id and e.position = h.head_position
    and (e.state = 'parked' or (e.state = 'pending' and e.held))
) as head on true
order by h.since
