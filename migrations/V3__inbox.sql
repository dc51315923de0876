-- The consumer's side: receipts, heads, what is deferred or parked, and evidence of conflicts.
set local role ticketflow_owner;

create table ticketflow.effect_receipts (
  event_id uuid not null,
  tenant_id ticketflow.tenant_id not null,
  source ticketflow.short_text not null,
  effect_name ticketflow.effect_name not null,
  digest bytea not null check (octet_length(digest) = 32),
  skipped boolean not null default false,
  applied_at timestamptz not null default clock_timestamp(),
  primary key (event_id, tenant_id, source, effect_name)
) partition by range (event_id);
comment on table ticketflow.effect_receipts is
  'One row for each effect of each event, written in the effect''s own transaction. Kept for the dedup window.';
comment on column ticketflow.effect_receipts.skipped is
  'Given up by an operator: nothing was applied, and nothing will be.';

create table ticketflow.receipt_floor (
  singleton boolean primary key default true check (singleton),
  floor uuid not null,
  truncated uuid not null,
  changed_at timestamptz not null default clock_timestamp(),
  constraint receipt_floor_order check (truncated <= floor)
);
comment on column ticketflow.receipt_floor.floor is
  'A delivery below it can no longer be told from a duplicate: it is parked, never applied.';
comment on column ticketflow.receipt_floor.truncated is
  'Receipts below it are gone. Follows floor once they are.';
insert into ticketflow.receipt_floor (floor, truncated)
  values ('00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000');

create table ticketflow.effect_heads (
  effect_name ticketflow.effect_name not null,
  tenant_id ticketflow.tenant_id not null,
  aggregate_type ticketflow.dotted_name not null,
  aggregate_id ticketflow.short_text not null,
  version bigint not null default 0 check (version >= 0),
  primary key (effect_name, tenant_id, aggregate_type, aggregate_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
comment on table ticketflow.effect_heads is
  'The last version of an aggregate that an effect which keeps order has applied.';

create table ticketflow.deferred_deliveries (
  delivery_id bigint generated always as identity primary key,
  state text collate "C" not null check (state in ('deferred', 'waiting', 'suspect', 'parked')),
  effect_name ticketflow.effect_name not null,
  pool ticketflow.pool_name not null,
  -- Null where the identity could not be read; such a row can only be shown and dropped.
  tenant_id ticketflow.tenant_id,
  source ticketflow.short_text,
  event_id uuid,
  digest bytea not null check (octet_length(digest) = 32),
  aggregate_type ticketflow.dotted_name,
  aggregate_id ticketflow.short_text,
  version bigint,
  previous_version bigint,
  event_type ticketflow.dotted_name,
  reason text not null,
  detail text not null default '',
  -- Whether it may still be applied: not a conflict, not below the floor, identity readable.
  applicable boolean not null,
  attempts bigint not null default 0,
  kills bigint not null default 0,
  next_attempt_at timestamptz,
  waiting_since timestamptz,
  lease_token uuid,
  leased_by text,
  leased_until timestamptz,
  routing_key text not null,
  properties jsonb not null,
  body bytea not null,
  received_at timestamptz not null default clock_timestamp(),
  changed_at timestamptz not null default clock_timestamp(),
  -- How often it was received while it was here: copies of a poisonous message are one row.
  copies bigint not null default 1,
  constraint deferred_deliveries_identity
    unique nulls not distinct (tenant_id, source, event_id, effect_name, digest),
  constraint deferred_deliveries_applicable check (
    not applicable or (tenant_id is not null and source is not null and event_id is not null)),
  constraint deferred_deliveries_due check ((state = 'parked') = (next_attempt_at is null)),
  constraint deferred_deliveries_lease check ((lease_token is null) = (leased_until is null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
comment on table ticketflow.deferred_deliveries is
  'Deliveries that wait for another try (deferred), for their order (waiting), that are tried alone because one like them may have killed a process (suspect), or that need a person (parked).';
comment on column ticketflow.deferred_deliveries.body is 'The exact bytes received.';
comment on column ticketflow.deferred_deliveries.properties is
  'Properties and headers as received, each header with its AMQP type.';
comment on column ticketflow.deferred_deliveries.kills is
  'Leases of a try that ran out: the process died with it. Two park it.';
create index deferred_deliveries_due_index on ticketflow.deferred_deliveries (next_attempt_at)
  where state <> 'parked';
create index deferred_deliveries_aggregate on ticketflow.deferred_deliveries
  (effect_name, tenant_id, aggregate_type, aggregate_id, previous_version)
  where applicable;
create index deferred_deliveries_parked on ticketflow.deferred_deliveries (delivery_id)
  where state = 'parked';

create table ticketflow.event_conflicts (
  conflict_id bigint generated always as identity primary key,
  tenant_id ticketflow.tenant_id not null,
  source ticketflow.short_text not null,
  event_id uuid not null,
  effect_name ticketflow.effect_name not null,
  digest bytea not null,
  first_digest bytea not null,
  first_effect ticketflow.effect_name not null,
  routing_key text not null,
  detected_at timestamptz not null default clock_timestamp(),
  constraint event_conflicts_once
    unique (tenant_id, source, event_id, effect_name, digest, first_digest)
);
comment on table ticketflow.event_conflicts is
  'Evidence that one identity came with two contents. The first content stands; the other is parked.';

create table ticketflow.operator_actions (
  action_id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  action text not null,
  tenant_id ticketflow.tenant_id,
  target jsonb not null default '{}',
  reason text not null default '',
  result jsonb not null default '{}'
);
comment on table ticketflow.operator_actions is 'Who changed what, when, why. Append only.';

create table ticketflow.consumer_marks (
  instance uuid primary key,
  consumer text not null,
  started_at timestamptz not null default clock_timestamp(),
  seen_at timestamptz not null default clock_timestamp()
);
comment on table ticketflow.consumer_marks is
  'One row for each consumer that runs, removed by a clean stop: whoever starts under a name that has one takes deliveries one at a time at first.';

reset role;
