-- Delayed events that are due may be claimed.
with due as materialized (
  select e.event_id, e.tenant_id, e.source
  from ticketflow.outbox_events as e
  join unnest($1::text[], $2::smallint[]) as locked (tenant_id, lane)
    on e.tenant_id = locked.tenant_id and e.lane = locked.lane
  where e.state = 'pending' and e.held and e.version is null
    and e.available_at <= (select clock_timestamp())
  order by e.available_at
  limit $3
)
update ticketflow.outbox_events as e
set held = false
from due
where e.event_id = due.event_id and e.tenant_id = due.tenant_id and e.source = due.source
  and e.state = 'pending' and e.held
