-- Locks lanes, in key order, whoever leases them: a settle of their relay waits, and finds what is
-- no longer pending left as it is.
select l.tenant_id, l.lane
from unnest($1::text[], $2::smallint[]) as wanted (tenant_id, lane)
join ticketflow.outbox_lanes as l on l.tenant_id = wanted.tenant_id and l.lane = wanted.lane
order by l.tenant_id, l.lane
for no key update of l
