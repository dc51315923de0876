-- Days whose ids are all below the floor.
select $1::text as parent, day
from ticketflow.partitions_of($1::text)
where ticketflow.uuid_v7_floor((day + 1)::timestamp at time zone 'UTC') <= $2::uuid
order by day
