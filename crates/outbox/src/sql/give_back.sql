-- Gives lanes back. A claim that took nothing does not count as one that ended unsettled.
update ticketflow.outbox_lanes as l
set lease_token = null, leased_by = null, leased_until = null,
  unsettled_claims = case when $4 then 0 else greatest(l.unsettled_claims - 1, 0) end
from unnest($1::text[], $2::smallint[]) as held (tenant_id, lane)
where l.tenant_id = held.tenant_id and l.lane = held.lane and l.lease_token = $3
