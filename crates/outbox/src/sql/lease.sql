-- Leases those of the lanes that are still free. A lane that somebody is changing is passed over.
with free as materialized (
  select l.tenant_id, l.lane, wanted.place
  from unnest($1::text[], $2::smallint[]) with ordinality as wanted (tenant_id, lane, place)
  join ticketflow.outbox_lanes as l on l.tenant_id = wanted.tenant_id and l.lane = wanted.lane
  where l.leased_until is null or l.leased_until < clock_timestamp()
  for no key update of l skip locked
)
update ticketflow.outbox_lanes as l
set lease_token = $3, leased_by = $4,
  leased_until = clock_timestamp() + make_interval(secs => $5),
  unsettled_claims = l.unsettled_claims + 1
from free
where l.tenant_id = free.tenant_id and l.lane = free.lane
returning l.tenant_id, l.lane, l.unsettled_claims, free.place
