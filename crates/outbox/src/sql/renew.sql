-- Renews leases. Answers which lanes are still ours.
with mine as materialized (
  select l.tenant_id, l.lane
  from unnest($1::text[], $2::smallint[], $3::uuid[]) as held (tenant_id, lane, token)
  join ticketflow.outbox_lanes as l on l.tenant_id = held.tenant_id and l.lane = held.lane
  where l.lease_token = held.token
  order by l.tenant_id, l.lane
  for no key update of l skip locked
)
update ticketflow.outbox_lanes as l
set leased_until = clock_timestamp() + make_interval(secs => $4)
from mine
where l.tenant_id = mine.tenant_id and l.lane = mine.lane
returning l.lease_token
