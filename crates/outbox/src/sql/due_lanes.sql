-- The lanes in which a head's wait is over or a delayed event is due. (The scalar subquery makes the
-- clock a value the index can be asked for.)
(
  select h.tenant_id, h.lane
  from ticketflow.outbox_holds as h
  where h.until <= (select clock_timestamp())
  order by h.until
  limit $1
)
union
(
  select e.tenant_id, e.lane
  from ticketflow.outbox_events as e
  where e.state = 'pending' and e.held and e.version is null
    and e.available_at <= (select clock_timestamp())
  order by e.available_at
  limit $1
)
