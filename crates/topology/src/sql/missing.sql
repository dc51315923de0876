-- Published events that a queue should have had and for which its effect has neither a receipt nor
-- a row that may still be applied. Below the floor a delivery would only be parked. The types are
-- matched as '.' || type, see patterns.rs. The size lets the caller bound what it loads at once.
select e.position, e.event_id, e.tenant_id::text as tenant_id, e.source::text as source,
  octet_length(e.payload)::bigint as bytes
from ticketflow.outbox_events as e
where e.state = 'published' and e.pool = $1::text
  and e.position > $4
  and e.published_at <= clock_timestamp() - $5::float8 * interval '1 second'
  and '.' || e.event_type ~ any($3::text[])
  and e.event_id >= (select floor from ticketflow.receipt_floor)
  and not exists (
    select from ticketflow.effect_receipts as r
    where r.event_id = e.event_id and r.tenant_id = e.tenant_id and r.source = e.source
      and r.effect_name = $2::text)
  and not exists (
    select from ticketflow.deferred_deliveries as d
    where d.tenant_id = e.tenant_id and d.source = e.source and d.event_id = e.event_id
      and d.effect_name = $2::text and d.applicable)
order by e.position
limit $6
