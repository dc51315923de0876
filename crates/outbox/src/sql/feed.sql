-- The heads of some aggregates are done: the next ones may go. A run of waiting rows is let go at
-- once (the waves keep their order), up to the next parked one; the hold moves to the run's end,
-- stays with a parked head, or goes when nothing is left behind it.
with hold as materialized (
  select h.tenant_id, h.aggregate_type, h.aggregate_id, done.position as done
  from unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
    as done (tenant_id, aggregate_type, aggregate_id, position)
  join ticketflow.outbox_holds as h on h.tenant_id = done.tenant_id
    and h.aggregate_type = done.aggregate_type and h.aggregate_id = done.aggregate_id
  where h.head_position <= done.position
),
next as materialized (
  select hold.tenant_id, hold.aggregate_type, hold.aggregate_id, waiting.*
  from hold
  cross join lateral (
    select e.event_id, e.source, e.position, e.last_error,
      e.state = 'parked' as is_parked,
      bool_or(e.state = 'parked') over (order by e.position) as is_behind_parked,
      row_number() over (order by e.position) as number
    from ticketflow.outbox_events as e
    where e.tenant_id = hold.tenant_id and e.aggregate_type = hold.aggregate_type
      and e.aggregate_id = hold.aggregate_id and e.position > hold.done
      and (e.state = 'parked' or (e.state = 'pending' and e.held))
      and e.version is not null
    order by e.position
    limit $5
  ) as waiting
),
let_go as (
  update ticketflow.outbox_events as e
  set held = false
  from next
  where not next.is_behind_parked
    and e.event_id = next.event_id and e.tenant_id = next.tenant_id and e.source = next.source
    and e.state = 'pending'
),
head as materialized (
  select hold.tenant_id, hold.aggregate_type, hold.aggregate_id,
    max(next.position) filter (where not next.is_behind_parked) as end_of_run,
    max(next.position) filter (where next.number = 1) as parked_head,
    max(next.last_error) filter (where next.number = 1) as parked_reason
  from hold
  left join next on next.tenant_id = hold.tenant_id
    and next.aggregate_type = hold.aggregate_type and next.aggregate_id = hold.aggregate_id
  group by hold.tenant_id, hold.aggregate_type, hold.aggregate_id
),
moved as (
  update ticketflow.outbox_holds as h
  set head_position = coalesce(head.end_of_run, head.parked_head), until = null,
    reason = case when head.end_of_run is null then coalesce(head.parked_reason, h.reason) else 'its turn' end
  from head
  where h.tenant_id = head.tenant_id and h.aggregate_type = head.aggregate_type
    and h.aggregate_id = head.aggregate_id
    and head.parked_head is not null
)
delete from ticketflow.outbox_holds as h
using head
where h.tenant_id = head.tenant_id and h.aggregate_type = head.aggregate_type
  and h.aggregate_id = head.aggregate_id
  and head.parked_head is null
