-- Takes back receipts that this very transaction has written: what is deferred or parked has none.
delete from ticketflow.effect_receipts
where effect_name = $4::text
  and (event_id, tenant_id, source) in (
    select given.event_id, given.tenant_id, given.source
    from unnest($1::uuid[], $2::text[], $3::text[]) as given (event_id, tenant_id, source))
  and event_id >= $5 and event_id <= $6
