-- Claims at most $3 due tasks of the tenants $1 (active, and of the pools $2 unless that is empty):
-- the first of each tenant, then the second of each. They become sending under the token $4 for $6
-- milliseconds; next_attempt_at of a sending task is the end of its lease, so that one that ran out
-- is due like any other. Without $7 the payload stays where it is.
with clock as materialized (
  select clock_timestamp() as now
), turn as materialized (
  select t.tenant_id
  from ticketflow.tenants as t
  where t.tenant_id = any($1::text[]) and t.state = 'active'
    and (cardinality($2::text[]) = 0 or t.pool = any($2::text[]))
), due as materialized (
  select turn.tenant_id, d.task_id
  from turn
  cross join lateral (
    select b.task_id, row_number() over (order by b.next_attempt_at) as place
    from ticketflow.business_tasks as b
    where b.tenant_id = turn.tenant_id and b.status in ('pending', 'sending', 'unknown')
      and b.next_attempt_at <= (select now from clock)
    order by b.next_attempt_at
    limit $3::bigint
  ) as d
  order by d.place, turn.tenant_id
  limit $3::bigint
), taken as materialized (
  -- The conditions again: a row that another loop has just settled is looked at anew. Written so that
  -- no index serves them: each row is found by its key, not by a walk over its tenant's tasks.
  select b.tenant_id, b.task_id, b.status as before
  from ticketflow.business_tasks as b
  join due on due.tenant_id = b.tenant_id and due.task_id = b.task_id
  where (b.status in ('pending', 'sending', 'unknown')) is true
    and (b.next_attempt_at <= (select now from clock)) is true
  order by b.tenant_id, b.task_id
  for update of b skip locked
)
update ticketflow.business_tasks as b
set status = 'sending',
  attempts = b.attempts + 1,
  lease_token = $4::uuid,
  leased_by = $5::text,
  leased_until = clock.now + $6::bigint * interval '1 millisecond',
  next_attempt_at = clock.now + $6::bigint * interval '1 millisecond'
from taken, clock
where b.tenant_id = taken.tenant_id and b.task_id = taken.task_id
returning b.task_id, b.tenant_id::text, b.ticket_id, b.event_id, b.source::text, b.task_type::text,
  case when $7::boolean then b.payload else ''::bytea end as payload,
  b.created_at, b.attempts, taken.before <> 'pending' as in_doubt, clock.now as claimed_at
