-- Days that ended longer ago than so many seconds.
select $1::text as parent, day
from ticketflow.partitions_of($1::text)
where (day + 1)::timestamp at time zone 'UTC' <= clock_timestamp() - make_interval(secs => $2::float8)
order by day
