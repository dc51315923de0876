select
  (
    select count(*) from ticketflow.outbox_events
    where state = 'pending' and not held
  ) as pending,
  (
    select extract(epoch from clock_timestamp() - min(greatest(e.recorded_at, e.available_at)))::float8
    from ticketflow.outbox_events as e
    join ticketflow.tenants as t on t.tenant_id = e.tenant_id and t.state = 'active'
    where e.state = 'pending' and not e.held
      and (e.available_at is null or e.available_at <= clock_timestamp())
  ) as oldest_due_seconds,
  (
    select count(*) from ticketflow.outbox_events
    where state = 'pending' and held and version is not null
  ) as held,
  (
    select count(*) from ticketflow.outbox_events
    where state = 'pending' and held and version is null
  ) as delayed,
  (select count(*) from ticketflow.outbox_events where state = 'parked') as parked_events,
  (select count(*) from ticketflow.outbox_holds) as held_aggregates,
  (
    select count(*) from ticketflow.deferred_deliveries where state <> 'parked'
  ) as deferred_deliveries,
  (
    select count(*) from ticketflow.deferred_deliveries where state = 'parked'
  ) as parked_deliveries,
  (select count(*) from ticketflow.event_conflicts) as conflicts
