-- Events published to a pool within a time, of a queue's types, in position order. Below the floor
-- a delivery would only be parked.
select e.position, e.event_id, e.tenant_id::text as tenant_id, e.source::text as source,
  octet_length(e.payload)::bigint as bytes
from ticketflow.outbox_events as e
where e.state = 'published' and e.pool = $1::text
  and '.' || e.event_type ~ any($3::text[])
  and e.position > $4::bigint
  and e.published_at >= $5::timestamptz and e.published_at < $6::timestamptz
  and ($7::text is null or e.tenant_id = $7::text)
  and e.event_id >= (select floor from ticketflow.receipt_floor)
  and not (
    $8::boolean and (
      exists (
        select from ticketflow.effect_receipts as r
        where r.event_id = e.event_id and r.tenant_id = e.tenant_id and r.source = e.source
          and r.effect_name = $2::text)
      or exists (
        select from ticketflow.deferred_deliveries as d
        where d.tenant_id = e.tenant_id and d.source = e.source and d.event_id = e.event_id
          and d.effect_name = $2::text and d.applicable)
    )
  )
order by e.position
limit $9::bigint
