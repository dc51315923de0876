-- The lanes still held under a token, locked to the end of the transaction: the fence of a settle.
select l.tenant_id, l.lane
from unnest($1::text[], $2::smallint[]) as held (tenant_id, lane)
join ticketflow.outbox_lanes as l on l.tenant_id = held.tenant_id and l.lane = held.lane
where l.lease_token = $3
order by l.tenant_id, l.lane
for no key update of l
