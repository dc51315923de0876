-- Whether something before this version may still come: a row here, or an event of the outbox that
-- is not published yet. Otherwise, whether it has waited long enough.
select
  exists (
    select from ticketflow.deferred_deliveries as earlier
    where earlier.effect_name = $1::text and earlier.tenant_id = $2::text
      and earlier.aggregate_type = $3::text and earlier.aggregate_id = $4::text
      and earlier.applicable and earlier.version > $5 and earlier.version < $6)
  or exists (
    select from ticketflow.outbox_events as held
    where held.tenant_id = $2::text and held.aggregate_type = $3::text
      and held.aggregate_id = $4::text and held.version > $5 and held.version < $6
      and (held.state = 'parked' or (held.state = 'pending' and held.held)))
  or exists (
    select from ticketflow.outbox_events as free
    where free.tenant_id = $2::text and free.lane = ticketflow.lane_of($2::text, $3::text, $4::text)
      and free.aggregate_type = $3::text and free.aggregate_id = $4::text
      and free.version > $5 and free.version < $6
      and free.state = 'pending' and not free.held) as blocked,
  (select clock_timestamp() - waiting.waiting_since >= make_interval(secs => $8)
    from ticketflow.deferred_deliveries as waiting where waiting.delivery_id = $7) as waited
