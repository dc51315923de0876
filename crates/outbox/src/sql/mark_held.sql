-- Takes rows that wait for the head of their aggregate out of the claim index, once and for all:
-- those among the next ones of these lanes.
with waiting as materialized (
  select next.event_id, next.tenant_id, next.source
  from unnest($1::text[], $2::smallint[]) as wanted (tenant_id, lane)
  cross join lateral (
    select e.event_id, e.tenant_id, e.source, e.aggregate_type, e.aggregate_id, e.version,
      e.position
    from ticketflow.outbox_events as e
    where e.tenant_id = wanted.tenant_id and e.lane = wanted.lane
      and e.state = 'pending' and not e.held
    order by e.position
    limit 2000
  ) as next
  join ticketflow.outbox_holds as h on h.tenant_id = next.tenant_id
    and h.aggregate_type = next.aggregate_type and h.aggregate_id = next.aggregate_id
  where next.version is not null and next.position > h.head_position
)
update ticketflow.outbox_events as e
set held = true
from waiting
where e.event_id = waiting.event_id and e.tenant_id = waiting.tenant_id
  and e.source = waiting.source and e.state = 'pending' and not e.held
