select e.event_id, e.tenant_id::text as tenant, e.source::text as source, e.state, e.held,
  t.state as tenant_state, coalesce(e.pool, t.pool)::text as pool,
  e.aggregate_type::text as aggregate_type, e.aggregate_id::text as aggregate_id, e.version,
  e.previous_version, e.event_type::text as event_type, e.content_type::text as content_type,
  octet_length(e.payload) as payload_bytes, e.headers, e.trace_context, e.lane::smallint as lane,
  e.position, e.recorded_at, e.available_at, e.published_at, e.attempts, e.last_error,
  h.head_position = e.position as is_head, h.until as hold_until, h.reason as hold_reason,
  case when l.leased_until > clock_timestamp() then l.leased_by end as leased_by
from ticketflow.outbox_events as e
join ticketflow.tenants as t on t.tenant_id = e.tenant_id
left join ticketflow.outbox_lanes as l on l.tenant_id = e.tenant_id and l.lane = e.lane
left join ticketflow.outbox_holds as h on h.tenant_id = e.tenant_id
  and h.aggregate_type = e.aggregate_type and h.aggregate_id = e.aggregate_id
where e.event_id = $1::uuid
order by e.tenant_id, e.source
