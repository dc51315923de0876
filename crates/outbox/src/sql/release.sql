-- Notes why events go back to be claimed again. They lose nothing and wait for nothing; a row that
-- has nothing to note is not touched at all.
update ticketflow.outbox_events as e
set last_error = back.reason, publish_tries = 0
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as back (event_id, tenant_id, source, reason)
where e.event_id = back.event_id and e.tenant_id = back.tenant_id and e.source = back.source
  and e.event_id >= $5 and e.event_id <= $6
  and e.state = 'pending'
