-- Heads whose wait is over may be claimed again; their successors stay behind the hold. Answers the
-- aggregates whose head is not there any more: those are to be fed.
with due as materialized (
  select h.tenant_id, h.aggregate_type, h.aggregate_id, h.head_position
  from unnest($1::text[], $2::smallint[]) as locked (tenant_id, lane)
  join ticketflow.outbox_holds as h on h.tenant_id = locked.tenant_id and h.lane = locked.lane
  where h.until <= (select clock_timestamp())
  order by h.until
  limit $3
),
let_go as materialized (
  update ticketflow.outbox_events as e
  set held = false
  from due
  where e.tenant_id = due.tenant_id and e.aggregate_type = due.aggregate_type
    and e.aggregate_id = due.aggregate_id and e.position = due.head_position
    and e.state = 'pending' and e.held
  returning e.tenant_id, e.aggregate_type, e.aggregate_id
),
tried as (
  update ticketflow.outbox_holds as h
  set until = null
  from due
  where h.tenant_id = due.tenant_id and h.aggregate_type = due.aggregate_type
    and h.aggregate_id = due.aggregate_id
)
select due.tenant_id, due.aggregate_type, due.aggregate_id, due.head_position
from due
where not exists (
  select from let_go
  where let_go.tenant_id = due.tenant_id and let_go.aggregate_type = due.aggregate_type
    and let_go.aggregate_id = due.aggregate_id)
