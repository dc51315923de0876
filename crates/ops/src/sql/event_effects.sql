select r.tenant_id::text as tenant, r.source::text as source, r.effect_name::text as effect,
  case when r.skipped then 'skipped' else 'applied' end as state, r.applied_at as at,
  null::bigint as delivery, null::bigint as attempts, null::text as reason,
  null::timestamptz as next_attempt_at
from ticketflow.effect_receipts as r
where r.event_id = $1::uuid
union all
select d.tenant_id::text, d.source::text, d.effect_name::text, d.state, d.received_at,
  d.delivery_id, d.attempts, d.reason, d.next_attempt_at
from ticketflow.deferred_deliveries as d
where d.event_id = $1::uuid
order by 1, 2, 3, 5
