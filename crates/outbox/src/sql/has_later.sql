-- Whether there is any event with an id from later than this one. By the key, backwards, so that it
-- costs one probe of each partition made ahead.
select exists (
  select from ticketflow.outbox_events where event_id > $1 order by event_id desc limit 1
)
