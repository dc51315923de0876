-- What is recorded and not yet settled, each count up to a bound so that it never costs much.
select
  (select count(*) from (
    select from ticketflow.outbox_events where state = 'pending' and not held limit $1) as counted) as claimable,
  (select count(*) from (
    select from ticketflow.outbox_events
    where state = 'pending' and held and version is null limit $1) as counted) as delayed,
  (select count(*) from (
    select from ticketflow.outbox_events
    where (state = 'parked' or (state = 'pending' and held))
      and state = 'pending' and version is not null limit $1) as counted) as held,
  (select count(*) from (
    select from ticketflow.outbox_events
    where (state = 'parked' or (state = 'pending' and held))
      and state = 'parked' limit $1) as counted) as parked,
  (select count(*) from (select from ticketflow.outbox_holds limit $1) as counted) as held_aggregates,
  (pg_snapshot_xmax(pg_current_snapshot())::text::bigint
    - pg_snapshot_xmin(pg_current_snapshot())::text::bigint) as snapshot_lag
