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
union all
select given.place, other.effect_name, other.digest
from given
cross join lateral (
  select held.effect_name, held.digest
  from ticketflow.deferred_deliveries as held
  where held.tenant_id = given.tenant_id and held.source = given.source
    and held.event_id = given.event_id and held.digest <> given.digest and held.applicable
  offset 0) as other
