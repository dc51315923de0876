select 'outbox_events' as parent, p.day, 'to be emptied unless something in it waits' as what
from ticketflow.partitions_of('outbox_events') as p
where (p.day + 1)::timestamp at time zone 'UTC' <= clock_timestamp() - make_interval(secs => $1::float8)
union all
select 'effect_receipts', p.day, 'to be emptied'
from ticketflow.partitions_of('effect_receipts') as p
where (p.day + 1)::timestamp at time zone 'UTC'
  <= date_trunc('day', clock_timestamp() - make_interval(secs => $2::float8), 'UTC')
order by 2, 1
