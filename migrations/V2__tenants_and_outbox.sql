-- Tenants and the outbox: what was recorded, in which order, and who is publishing it.
set local role ticketflow_owner;

create table ticketflow.tenants (
  tenant_id ticketflow.tenant_id primary key,
  pool ticketflow.pool_name not null default 'shared',
  state text not null default 'active' check (state in ('active', 'paused')),
  -- Requests a second and burst over HTTP; null means the producer's setting.
  rate_per_second integer check (rate_per_second between 1 and 1000000),
  rate_burst integer check (rate_burst between 1 and 1000000),
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);
comment on column ticketflow.tenants.pool is
  'The pool whose queues take the tenant''s events. Changed only by whoever holds all 16 lanes.';
comment on column ticketflow.tenants.state is
  'paused: still records, is not claimed.';
-- The claim's walk jumps along it from tenant to tenant of a pool.
create index tenants_pool on ticketflow.tenants (pool, tenant_id);

create table ticketflow.tenant_keys (
  tenant_id ticketflow.tenant_id not null references ticketflow.tenants,
  key_hash bytea not null check (octet_length(key_hash) = 32),
  label text not null default '',
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz,
  revoked_at timestamptz,
  primary key (tenant_id, key_hash)
);
comment on column ticketflow.tenant_keys.key_hash is 'SHA-256 of the key; the key itself is nowhere.';
create index tenant_keys_hash on ticketflow.tenant_keys (key_hash);

-- Orders a lane. Cache 1: a session that kept numbers for later would break commit order.
create sequence ticketflow.outbox_position as bigint cache 1;

create table ticketflow.outbox_events (
  event_id uuid not null,
  position bigint not null,
  tenant_id ticketflow.tenant_id not null,
  source ticketflow.short_text not null,
  aggregate_type ticketflow.dotted_name not null,
  aggregate_id ticketflow.short_text not null,
  version bigint,
  previous_version bigint,
  lane ticketflow.lane_number not null,
  event_type ticketflow.dotted_name not null,
  content_type ticketflow.short_text not null,
  payload bytea not null,
  headers jsonb not null default '{}',
  trace_context jsonb not null default '{}',
  occurred_at timestamptz not null default clock_timestamp(),
  recorded_at timestamptz not null default clock_timestamp(),
  -- What follows changes; everything above never does.
  pool ticketflow.pool_name,
  state text collate "C" not null default 'pending',
  held boolean not null default false,
  attempts bigint not null default 0,
  publish_tries smallint not null default 0,
  available_at timestamptz,
  first_refused_at timestamptz,
  published_at timestamptz,
  last_error text,
  primary key (event_id, tenant_id, source),
  constraint outbox_events_state check (state in ('pending', 'published', 'parked', 'skipped')),
  constraint outbox_events_published check ((state = 'published') = (published_at is not null)),
  constraint outbox_events_held check (not held or state in ('pending', 'parked')),
  constraint outbox_events_versions check (
    (version is null) = (previous_version is null)
    and (version is null or (previous_version >= 0 and version > previous_version))),
  constraint outbox_events_delayed check (version is not null or available_at is not null),
  constraint outbox_events_payload_size check (octet_length(payload) <= 2097152),
  constraint outbox_events_headers check (
    jsonb_typeof(headers) = 'object' and jsonb_typeof(trace_context) = 'object'),
  constraint outbox_events_counts check (attempts >= 0 and publish_tries >= 0)
) partition by range (event_id);
comment on table ticketflow.outbox_events is
  'Recorded events. One partition a day by event_id, so that uniqueness, age and dropping old data hang on one column.';
comment on column ticketflow.outbox_events.position is
  'Orders a lane. Drawn under the aggregate''s lock, so for one aggregate it is commit order. Never a watermark.';
comment on column ticketflow.outbox_events.previous_version is
  'The aggregate''s version before this event; 0 for the first. Null, like version, for a delayed event.';
comment on column ticketflow.outbox_events.pool is 'The pool it was published to; null until then.';
comment on column ticketflow.outbox_events.held is
  'Waits for the head of its aggregate (or is that head, or is delayed): outside the claim index.';
comment on column ticketflow.outbox_events.attempts is 'Answers that were this event''s own fault.';
comment on column ticketflow.outbox_events.publish_tries is
  'Publishes written down before they were tried, because claims of its lane ended unsettled twice; back to 0 by any answer.';
comment on column ticketflow.outbox_events.available_at is
  'Not to be published before: given by the caller for a delayed event, set by a refusal otherwise.';
comment on column ticketflow.outbox_events.first_refused_at is
  'When its present run of refusals began; parked when that is older than park_after.';

-- The claim walks this: one probe for each lane with work, then its rows in order.
create index outbox_events_claim on ticketflow.outbox_events (tenant_id, lane, position)
  where state = 'pending' and not held;
-- The next one of an aggregate when its head is done, and the listing of what is held or parked.
create index outbox_events_waiting
  on ticketflow.outbox_events (tenant_id, aggregate_type, aggregate_id, position)
  where state = 'parked' or (state = 'pending' and held);
-- Delayed events that are due.
create index outbox_events_delayed_due on ticketflow.outbox_events (available_at)
  where state = 'pending' and held and version is null;

create table ticketflow.outbox_aggregates (
  tenant_id ticketflow.tenant_id not null,
  aggregate_type ticketflow.dotted_name not null,
  aggregate_id ticketflow.short_text not null,
  version bigint not null check (version >= 0),
  primary key (tenant_id, aggregate_type, aggregate_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
comment on table ticketflow.outbox_aggregates is
  'One counter for each aggregate. Its row lock, held to the end of the transaction, makes position order commit order.';

create table ticketflow.outbox_holds (
  tenant_id ticketflow.tenant_id not null,
  aggregate_type ticketflow.dotted_name not null,
  aggregate_id ticketflow.short_text not null,
  lane ticketflow.lane_number not null,
  head_position bigint not null,
  until timestamptz,
  reason text not null,
  since timestamptz not null default clock_timestamp(),
  primary key (tenant_id, aggregate_type, aggregate_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
comment on column ticketflow.outbox_holds.until is
  'When the head is tried again; null while it is parked and waits for a person.';
create index outbox_holds_due on ticketflow.outbox_holds (until) where until is not null;
create index outbox_holds_lane on ticketflow.outbox_holds (tenant_id, lane, head_position);

create table ticketflow.outbox_lanes (
  tenant_id ticketflow.tenant_id not null references ticketflow.tenants,
  lane ticketflow.lane_number not null,
  lease_token uuid,
  leased_by text,
  leased_until timestamptz,
  unsettled_claims bigint not null default 0,
  primary key (tenant_id, lane),
  constraint outbox_lanes_lease check (
    (lease_token is null) = (leased_until is null) and (lease_token is null) = (leased_by is null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
comment on table ticketflow.outbox_lanes is 'Who is publishing what. 16 rows for each tenant.';
comment on column ticketflow.outbox_lanes.unsettled_claims is
  'Claims in a row that ended without a settle: from two on the lane is published one by one.';

-- A tenant comes with its lanes, whoever adds it.
create function ticketflow.add_lanes() returns trigger
language plpgsql
set search_path = pg_catalog
as $$
begin
  insert into ticketflow.outbox_lanes (tenant_id, lane)
  select new.tenant_id, number from generate_series(0, 15) as number
  on conflict do nothing;
  return null;
end
$$;
create trigger tenants_add_lanes after insert on ticketflow.tenants
  for each row execute function ticketflow.add_lanes();

-- What is recorded stays as it was recorded; marking does not fire this.
create function ticketflow.refuse_change() returns trigger
language plpgsql
set search_path = pg_catalog
as $$
begin
  raise exception 'a recorded event does not change'
    using errcode = 'restrict_violation',
      hint = 'Record another event instead.';
end
$$;
create trigger outbox_events_immutable
  before update of event_id, position, tenant_id, source, aggregate_type, aggregate_id, version,
    previous_version, lane, event_type, content_type, payload, headers, trace_context, occurred_at,
    recorded_at
  on ticketflow.outbox_events
  for each row execute function ticketflow.refuse_change();

create table ticketflow.effect_queues (
  pool ticketflow.pool_name not null,
  effect ticketflow.effect_name not null,
  event_types text[] not null check (cardinality(event_types) > 0),
  generation bigint not null default 1,
  declared_generation bigint not null default 0,
  ready_generation bigint not null default 0,
  generation_at timestamptz not null default clock_timestamp(),
  verified_at timestamptz,
  paused boolean not null default false,
  primary key (pool, effect),
  constraint effect_queues_generations check (
    ready_generation <= declared_generation and declared_generation <= generation)
);
comment on table ticketflow.effect_queues is
  'Which queues must exist for a pool. Its relays publish only while each is ready in its present generation.';
comment on column ticketflow.effect_queues.generation is
  'Raised, and committed, before a queue is made or made again.';
comment on column ticketflow.effect_queues.declared_generation is
  'The generation in which the queue was last declared and bound.';
comment on column ticketflow.effect_queues.ready_generation is
  'The generation whose missing events have been replayed to the queue.';
comment on column ticketflow.effect_queues.paused is
  'The effect''s consumers of this pool leave their queue alone.';

insert into ticketflow.tenants (tenant_id) values ('default');
insert into ticketflow.effect_queues (pool, effect, event_types) values
  ('shared', 'notification', '{ticket.#}'),
  ('shared', 'search', '{ticket.#}'),
  ('shared', 'audit', '{#}');

reset role;
