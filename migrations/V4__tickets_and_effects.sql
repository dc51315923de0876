-- The worked domain: tickets, and what the three effects write.
set local role ticketflow_owner;

-- No foreign key to tenants: each insert would lock its tenant's row, which all writers of a tenant
-- share. Nobody may delete a tenant, and only functions that have looked it up write here.
create table ticketflow.tickets (
  tenant_id ticketflow.tenant_id not null,
  ticket_id uuid not null,
  version bigint not null check (version > 0),
  subject text not null check (char_length(subject) between 1 and 255),
  body text not null default '' check (octet_length(body) <= 65536),
  status text collate "C" not null default 'open'
    check (status in ('open', 'pending', 'resolved', 'closed')),
  priority text collate "C" not null default 'normal'
    check (priority in ('low', 'normal', 'high', 'urgent')),
  assignee text check (char_length(assignee) between 1 and 255),
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, ticket_id)
) with (fillfactor = 85);
create index tickets_status on ticketflow.tickets (tenant_id, status, ticket_id);

create table ticketflow.idempotency_keys (
  tenant_id ticketflow.tenant_id not null,
  idempotency_key text collate "C" not null
    check (octet_length(idempotency_key) between 1 and 255),
  request_digest bytea not null check (octet_length(request_digest) = 32),
  status smallint,
  response bytea,
  etag text,
  location text,
  created_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, idempotency_key),
  constraint idempotency_keys_answer check ((status is null) = (response is null))
);
comment on table ticketflow.idempotency_keys is
  'The first answer to a request, written in the ticket''s own transaction, given again to the same request.';
comment on column ticketflow.idempotency_keys.status is
  'Null, like response, only within the transaction that takes the key first and fills it in last.';
create index idempotency_keys_age on ticketflow.idempotency_keys (created_at);

create table ticketflow.business_tasks (
  task_id uuid not null,
  tenant_id ticketflow.tenant_id not null,
  ticket_id uuid not null,
  event_id uuid not null,
  source ticketflow.short_text not null,
  task_type ticketflow.dotted_name not null,
  status text collate "C" not null default 'pending'
    check (status in ('pending', 'sending', 'unknown', 'delivered', 'parked', 'skipped')),
  attempts bigint not null default 0,
  next_attempt_at timestamptz not null default clock_timestamp(),
  lease_token uuid,
  leased_by text,
  leased_until timestamptz,
  payload bytea not null default '',
  parked_reason text collate "C"
    check (parked_reason in ('refused', 'endpoint', 'attempts', 'unknown')),
  last_error text,
  created_at timestamptz not null default clock_timestamp(),
  delivered_at timestamptz,
  primary key (tenant_id, task_id),
  constraint business_tasks_ticket
    foreign key (tenant_id, ticket_id) references ticketflow.tickets (tenant_id, ticket_id),
  constraint business_tasks_delivered check ((status = 'delivered') = (delivered_at is not null)),
  constraint business_tasks_lease check (
    (lease_token is null) = (leased_until is null) and (lease_token is null) = (status <> 'sending')),
  constraint business_tasks_parked check ((status = 'parked') = (parked_reason is not null))
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);
comment on table ticketflow.business_tasks is
  'The notification effect: what is to be told to the outside, under task_id as idempotency key.';
comment on column ticketflow.business_tasks.status is
  'sending: written down before the request goes out; unknown: its answer got lost, to be reconciled.';
comment on column ticketflow.business_tasks.next_attempt_at is
  'When it is due; for a sending task the end of its lease, so that one that ran out is due too.';
comment on column ticketflow.business_tasks.parked_reason is
  'refused: its content; endpoint: as any other would be; attempts: too many; unknown: never answered.';
-- Tenants take turns, so the claim asks for one tenant's first tasks; with the status in it, what
-- waits is counted without looking at the rows.
create index business_tasks_due on ticketflow.business_tasks (tenant_id, next_attempt_at)
  include (status)
  where status in ('pending', 'sending', 'unknown');
create index business_tasks_parked_index on ticketflow.business_tasks (tenant_id, task_id)
  where status = 'parked';
create index business_tasks_ticket_index on ticketflow.business_tasks (tenant_id, ticket_id);

create table ticketflow.search_documents (
  tenant_id ticketflow.tenant_id not null,
  ticket_id uuid not null,
  version bigint not null check (version > 0),
  subject text not null,
  body text not null,
  status text collate "C" not null,
  priority text collate "C" not null,
  assignee text,
  updated_at timestamptz not null,
  document tsvector not null generated always as (
    setweight(to_tsvector('simple', subject), 'A') || setweight(to_tsvector('simple', body), 'B')
  ) stored,
  primary key (tenant_id, ticket_id)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);
comment on table ticketflow.search_documents is
  'The search effect: the newest version of each ticket; never moved back by an older one.';
create index search_documents_text on ticketflow.search_documents using gin (document);

create table ticketflow.audit_entries (
  entry_id bigint generated always as identity,
  tenant_id ticketflow.tenant_id not null,
  aggregate_type ticketflow.dotted_name not null,
  aggregate_id ticketflow.short_text not null,
  version bigint,
  event_id uuid not null,
  source ticketflow.short_text not null,
  event_type ticketflow.dotted_name not null,
  digest bytea not null,
  occurred_at timestamptz not null,
  late boolean not null default false,
  gap boolean not null default false,
  applied_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, entry_id)
);
comment on table ticketflow.audit_entries is
  'The audit effect: append only, in version order for each aggregate.';
comment on column ticketflow.audit_entries.late is 'Arrived below the head: applied out of order.';
comment on column ticketflow.audit_entries.gap is 'Versions before it were given up waiting for.';
create index audit_entries_aggregate
  on ticketflow.audit_entries (tenant_id, aggregate_type, aggregate_id, entry_id);

reset role;
