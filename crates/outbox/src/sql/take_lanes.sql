-- Locks lanes to change what is held in them; one that somebody else is changing is passed over.
select l.tenant_id, l.lane
from unnest($1::text[], $2::smallint[]) as wanted (tenant_id, lane)
join ticketflow.outbox_lanes as l on l.tenant_id = wanted.tenant_id and l.lane = wanted.lane
for no key update of l skip locked
