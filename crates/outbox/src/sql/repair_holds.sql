-- A due hold for each aggregate whose held events have none. A lane that was not locked can only
-- have come since; its turn is the next time.
insert into ticketflow.outbox_holds
  (tenant_id, aggregate_type, aggregate_id, lane, head_position, until, reason)
select e.tenant_id, e.aggregate_type, e.aggregate_id, e.lane, min(e.position), clock_timestamp(),
  'repaired'
from ticketflow.outbox_events as e
left join ticketflow.outbox_holds as h on h.tenant_id = e.tenant_id
  and h.aggregate_type = e.aggregate_type and h.aggregate_id = e.aggregate_id
where e.state = 'pending' and e.held and e.version is not null and h.tenant_id is null
group by e.tenant_id, e.aggregate_type, e.aggregate_id, e.lane
order by e.tenant_id, e.aggregate_type, e.aggregate_id
on conflict do nothing
