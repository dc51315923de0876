-- Events numbered $2 to $3, drawn by the seed $1 over $5 aggregates of $4 tenants, with counters
-- that agree: what as many transactions of record_event would have left, in one statement.
-- $6 is the payload's size, $7 the prefix of tenant ids, $8 the event type, $9 words to fill
-- payloads with, $10 the state.
with drawn as materialized (
  select n, mod(hashint8extended(n, $1) & 9223372036854775807, $5::bigint) as k
  from generate_series($2::bigint, $3::bigint) as n
),
placed as materialized (
  select n, k, $7::text || lpad(mod(k, $4::bigint)::text, 5, '0') as tenant_id,
    md5($1 || '/' || $7 || '/' || k)::uuid::text as aggregate_id,
    row_number() over (partition by k order by n) as step
  from drawn
),
versioned as materialized (
  select p.n, p.tenant_id, p.aggregate_id, coalesce(a.version, 0) + p.step as version
  from placed as p
  left join ticketflow.outbox_aggregates as a
    on a.tenant_id = p.tenant_id and a.aggregate_type = 'ticket' and a.aggregate_id = p.aggregate_id
),
counted as (
  insert into ticketflow.outbox_aggregates (tenant_id, aggregate_type, aggregate_id, version)
  select tenant_id, 'ticket', aggregate_id, max(version)
  from versioned
  group by tenant_id, aggregate_id
  on conflict (tenant_id, aggregate_type, aggregate_id) do update set version = excluded.version
)
insert into ticketflow.outbox_events (
  event_id, position, tenant_id, source, aggregate_type, aggregate_id, version, previous_version,
  lane, event_type, content_type, payload, state, published_at, pool)
select ticketflow.uuid_v7(), nextval('ticketflow.outbox_position'), tenant_id, 'ticketflow', 'ticket',
  aggregate_id, version, version - 1, ticketflow.lane_of(tenant_id, 'ticket', aggregate_id), $8,
  'application/json',
  head || substring($9::bytea from 1 + mod(n * 7919, octet_length($9) / 2)::integer
    for greatest($6::integer - octet_length(head) - octet_length(tail), 0)) || tail,
  $10::text,
  case $10 when 'published' then clock_timestamp() end,
  case $10 when 'published' then 'shared' end
from (select * from versioned order by n) as v
cross join lateral (
  select
    convert_to(
      '{"event_type":"' || $8 || '","ticket":{"tenant_id":"' || tenant_id || '","ticket_id":"'
        || aggregate_id || '","version":' || version || ',"subject":"Ticket ' || n || '","body":"',
      'UTF8') as head,
    '","status":"open","priority":"normal","assignee":null,"created_at":"2026-01-01T00:00:00.000000Z","updated_at":"2026-01-01T00:00:00.000000Z"},"payload":null}'::bytea
      as tail
) as around
