select l.leased_by as relay, count(*) as lanes, max(l.leased_until) as leased_until
from ticketflow.outbox_lanes as l
where l.leased_until > clock_timestamp()
group by l.leased_by
order by l.leased_by
