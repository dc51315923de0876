-- A row that is there already stays as it is: it stands for this delivery too.
insert into ticketflow.deferred_deliveries as standing (
  state, effect_name, pool, tenant_id, source, event_id, digest,
  aggregate_type, aggregate_id, version, previous_version, event_type,
  reason, detail, applicable, attempts, next_attempt_at, waiting_since,
  routing_key, properties, body)
values (
  $1::text, $2::text, $3::text, $4::text, $5::text, $6, $7,
  $8::text, $9::text, $10, $11, $12::text,
  $13, $14, $15, $16, clock_timestamp() + make_interval(secs => $17),
  case when $1::text = 'waiting' then clock_timestamp() end,
  $18, $19, $20)
on conflict (tenant_id, source, event_id, effect_name, digest) do update
set copies = standing.copies + 1
