-- Read after commit: another content of the same identity, with any effect.
with given as materialized (
  select * from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[]) with ordinality
    as given (event_id, tenant_id, source, digest, place)
)
select given.place, seen.effect_name, seen.digest
from ticketflow.effect_receipts as seen
join given
  on given.event_id = seen.event_id and given.tenant_id = seen.tenant_id
  and given.source = seen.source and given.digest <> seen.digest
where seen.event_id = any($1) and seen.event_id >= $5 and seen.event_id <= $6
union
select given.place, seen.effect_name, seen.digest
from given
join ticketflow.deferred_deliveries as seen
  on seen.tenant_id = given.tenant_id and seen.source = given.source
  and seen.event_id = given.event_id and given.digest <> seen.digest
where seen.applicable
