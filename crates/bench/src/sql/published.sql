-- How many events ended in which state, and when the last was settled.
select count(*) filter (where state = 'published'), count(*) filter (where state <> 'published'),
  max(published_at)
from ticketflow.outbox_events
where starts_with(tenant_id, $1::text)
