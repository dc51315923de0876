select *
from (
  (
    select 'event' as kind, e.event_id::text as id, e.tenant_id::text as tenant,
      null::text as effect, e.event_type::text as event_type,
      e.aggregate_type || '/' || e.aggregate_id as about, e.attempts, e.recorded_at as since,
      e.last_error as reason
    from ticketflow.outbox_events as e
    where e.state = 'parked' and coalesce($1::text = 'event', true) and $3::text is null
      and ($2::text is null or e.tenant_id = $2::text)
      and ($4::text is null or strpos(e.last_error, $4::text) > 0)
      and ($5::float8 is null or e.recorded_at <= clock_timestamp() - make_interval(secs => $5::float8))
    order by e.recorded_at
    limit $6::bigint
  )
  union all
  (
    select 'delivery', d.delivery_id::text, d.tenant_id::text, d.effect_name::text,
      d.event_type::text, d.aggregate_type || '/' || d.aggregate_id, d.attempts, d.received_at,
      d.reason || case when d.detail <> '' then ': ' || d.detail else '' end
    from ticketflow.deferred_deliveries as d
    where d.state = 'parked' and coalesce($1::text = 'delivery', true)
      and ($2::text is null or d.tenant_id = $2::text)
      and ($3::text is null or d.effect_name = $3::text)
      and ($4::text is null or strpos(d.reason || ': ' || d.detail, $4::text) > 0)
      and ($5::float8 is null or d.received_at <= clock_timestamp() - make_interval(secs => $5::float8))
    order by d.delivery_id
    limit $6::bigint
  )
  union all
  (
    select 'task', b.task_id::text, b.tenant_id::text, null, b.task_type::text,
      'ticket/' || b.ticket_id, b.attempts, b.created_at,
      b.parked_reason || coalesce(': ' || b.last_error, '')
    from ticketflow.business_tasks as b
    where b.status = 'parked' and coalesce($1::text = 'task', true) and $3::text is null
      and ($2::text is null or b.tenant_id = $2::text)
      and ($4::text is null or strpos(b.parked_reason || coalesce(': ' || b.last_error, ''), $4::text) > 0)
      and ($5::float8 is null or b.created_at <= clock_timestamp() - make_interval(secs => $5::float8))
    order by b.created_at
    limit $6::bigint
  )
) as parked
order by since, kind, id
