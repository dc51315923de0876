-- Before a row that may be applied is written: one of the same key that may not gives way.
delete from ticketflow.deferred_deliveries
where tenant_id = $1::text and source = $2::text and event_id = $3 and effect_name = $4::text and digest = $5
  and not applicable
