-- Marks events of a pool as published. The bounds let the plan leave out the other partitions; the
-- pool's name is checked once and not for each row.
update ticketflow.outbox_events as e
set state = 'published', published_at = clock_timestamp(),
  pool = (select $4::text::ticketflow.pool_name), publish_tries = 0, last_error = null
from unnest($1::uuid[], $2::text[], $3::text[]) as done (event_id, tenant_id, source)
where e.event_id = done.event_id and e.tenant_id = done.tenant_id and e.source = done.source
  and e.event_id >= $5 and e.event_id <= $6
  and e.state = 'pending'
