-- Rows of these identities that may still be applied. Whoever holds the receipts' keys is the only
-- one who can add one. `offset 0` keeps it at one look by key for each identity, however many rows
-- there are and whatever the statistics say.
select given.place, standing.delivery_id, standing.digest, standing.state
from unnest($1::uuid[], $2::text[], $3::text[]) with ordinality
  as given (event_id, tenant_id, source, place)
cross join lateral (
  select held.delivery_id, held.digest, held.state
  from ticketflow.deferred_deliveries as held
  where held.tenant_id = given.tenant_id and held.source = given.source
    and held.event_id = given.event_id and held.effect_name = $4::text and held.applicable
  offset 0) as standing
