-- Rows of these identities that may still be applied. Whoever holds the receipts' keys is the only
-- one who can add one.
select given.place, standing.delivery_id, standing.digest, standing.state
from unnest($1::uuid[], $2::text[], $3::text[]) with ordinality
  as given (event_id, tenant_id, source, place)
join ticketflow.deferred_deliveries as standing
  on standing.tenant_id = given.tenant_id and standing.source = given.source
  and standing.event_id = given.event_id and standing.effect_name = $4::text
where standing.applicable
