-- Events that need a person. The successors of one that is in its aggregate's order wait for it.
with parked as materialized (
  update ticketflow.outbox_events as e
  set state = 'parked', held = true, attempts = least(e.attempts, 9223372036854775806) + 1, publish_tries = 0,
    first_refused_at = coalesce(e.first_refused_at, clock_timestamp()), last_error = back.reason
  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[])
    as back (event_id, tenant_id, source, reason)
  where e.event_id = back.event_id and e.tenant_id = back.tenant_id and e.source = back.source
    and e.event_id >= $5 and e.event_id <= $6
    and e.state = 'pending'
  returning e.tenant_id, e.aggregate_type, e.aggregate_id, e.lane, e.position, e.version,
    e.last_error
),
held as (
  insert into ticketflow.outbox_holds as h
    (tenant_id, aggregate_type, aggregate_id, lane, head_position, until, reason)
  select tenant_id, aggregate_type, aggregate_id, lane, position, null, last_error
  from parked
  where version is not null
  order by tenant_id, aggregate_type, aggregate_id
  on conflict (tenant_id, aggregate_type, aggregate_id) do update
  set head_position = excluded.head_position, until = null, reason = excluded.reason
)
select count(*) from parked
