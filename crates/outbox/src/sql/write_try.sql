-- Writes a publish down before it is tried, under the lease. Answers how many tries are written now;
-- nothing if the lease or the event is gone.
update ticketflow.outbox_events as e
set publish_tries = least(e.publish_tries, 32766) + 1
from ticketflow.outbox_lanes as l
where e.event_id = $1 and e.tenant_id = $2 and e.source = $3 and e.state = 'pending'
  and l.tenant_id = e.tenant_id and l.lane = e.lane and l.lease_token = $4
returning e.publish_tries
