-- Leases a tenant's free lanes and renews those under the token. It is no claim: what is counted of
-- claims that ended unsettled stays as it is.
with free as materialized (
  select l.tenant_id, l.lane
  from ticketflow.outbox_lanes as l
  where l.tenant_id = $1::text
    and (l.leased_until is null or l.leased_until < clock_timestamp() or l.lease_token = $2::uuid)
  order by l.lane
  for no key update of l skip locked
)
update ticketflow.outbox_lanes as l
set lease_token = $2::uuid, leased_by = $3::text,
  leased_until = clock_timestamp() + make_interval(secs => $4::float8)
from free
where l.tenant_id = free.tenant_id and l.lane = free.lane
