-- Recording: the one way into the outbox, for any language, inside the caller's transaction.
-- The functions belong to ticketflow_definer, which may write the outbox and is not its owner.
-- Where they look something up, scans are off: a plan made while a table was small is kept by the
-- session while it grows.
grant create on schema ticketflow to ticketflow_definer;
set local role ticketflow_definer;

-- Refuses what the broker or the relay would choke on, with the rule as the hint.
create function ticketflow.check_event(
  tenant_id text, aggregate_type text, aggregate_id text, event_type text, payload bytea,
  content_type text, source text, headers jsonb, trace_context jsonb)
returns void
language plpgsql immutable
set search_path = pg_catalog
as $$
declare
  wrong text;
  rule text;
begin
  case
    when tenant_id is null or tenant_id !~ '^[a-z0-9][a-z0-9_-]{0,62}$' then
      wrong := format('tenant id %L', left(tenant_id, 80));
      rule := '1 to 63 of a-z, 0-9, "_" and "-", starting with a letter or digit';
    when aggregate_type is null or octet_length(aggregate_type) > 100
      or aggregate_type !~ '^[a-z0-9_]+(\.[a-z0-9_]+)*$' then
      wrong := format('aggregate type %L', left(aggregate_type, 80));
      rule := 'words of a-z, 0-9 and "_" joined by ".", at most 100 bytes';
    when event_type is null or octet_length(event_type) > 100
      or event_type !~ '^[a-z0-9_]+(\.[a-z0-9_]+)*$' then
      wrong := format('event type %L', left(event_type, 80));
      rule := 'words of a-z, 0-9 and "_" joined by ".", at most 100 bytes';
    when aggregate_id is null or octet_length(aggregate_id) not between 1 and 255
      or aggregate_id ~ '[\u0001-\u001f\u007f-\u009f]' then
      wrong := format('aggregate id %L', left(aggregate_id, 80));
      rule := '1 to 255 bytes of UTF-8 without control characters';
    when source is null or octet_length(source) not between 1 and 255
      or source ~ '[\u0001-\u001f\u007f-\u009f]' then
      wrong := format('source %L', left(source, 80));
      rule := '1 to 255 bytes of UTF-8 without control characters';
    when content_type is null or octet_length(content_type) not between 1 and 255
      or content_type ~ '[\u0001-\u001f\u007f-\u009f]' then
      wrong := format('content type %L', left(content_type, 80));
      rule := '1 to 255 bytes of UTF-8 without control characters';
    when payload is null then
      wrong := 'a payload of null';
      rule := 'the bytes of the event; empty is allowed';
    when octet_length(payload) > 2097152 then
      wrong := format('a payload of %s bytes', octet_length(payload));
      rule := 'at most 2097152 bytes; put large content elsewhere and record where';
    else
      if headers = '{}' and trace_context = '{}' then
        return;
      end if;
      perform ticketflow.check_headers(headers, trace_context);
      return;
  end case;
  raise exception '% is not valid', wrong
    using errcode = 'invalid_parameter_value', hint = rule || '.';
end
$$;

create function ticketflow.check_headers(headers jsonb, trace_context jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog
as $$
declare
  name text;
  value jsonb;
  bytes bigint := 0;
begin
  if jsonb_typeof(headers) is distinct from 'object'
    or jsonb_typeof(trace_context) is distinct from 'object' then
    raise exception 'headers and trace_context must be JSON objects'
      using errcode = 'invalid_parameter_value',
        hint = 'Names with text values, e.g. {"region":"eu"}; {} for none.';
  end if;
  for name in select jsonb_object_keys(trace_context) loop
    if name not in ('traceparent', 'tracestate') then
      raise exception 'trace_context has a field %', quote_literal(left(name, 80))
        using errcode = 'invalid_parameter_value',
          hint = 'Only traceparent and tracestate (W3C Trace Context).';
    end if;
  end loop;
  for name, value in select * from jsonb_each(headers) union all select * from jsonb_each(trace_context) loop
    if octet_length(name) not between 1 and 253 or name ~ '[\u0001-\u001f\u007f-\u009f]' then
      raise exception 'header name % is not valid', quote_literal(left(name, 80))
        using errcode = 'invalid_parameter_value',
          hint = '1 to 253 bytes of UTF-8 without control characters.';
    end if;
    if jsonb_typeof(value) <> 'string' or octet_length(value #>> '{}') > 4096 then
      raise exception 'the value of header % is not valid', quote_literal(left(name, 80))
        using errcode = 'invalid_parameter_value', hint = 'Text of at most 4096 bytes.';
    end if;
    bytes := bytes + octet_length(name) + octet_length(value #>> '{}');
  end loop;
  if bytes > 16384 then
    raise exception 'headers and trace context have % bytes', bytes
      using errcode = 'invalid_parameter_value', hint = 'At most 16384 bytes together.';
  end if;
end
$$;

-- Locks the counter of an aggregate to the end of the transaction and returns its version, 0 for
-- a new one. Whoever writes the aggregate's own row takes this first: then position order is
-- commit order whatever else is locked.
create function ticketflow.lock_aggregate(tenant_id text, aggregate_type text, aggregate_id text)
returns bigint
language plpgsql volatile security definer
set enable_seqscan = off
set search_path = pg_catalog
as $$
#variable_conflict use_column
declare
  last bigint;
begin
  perform ticketflow.check_tenant(lock_aggregate.tenant_id);
  loop
    select version into last
    from ticketflow.outbox_aggregates
    where tenant_id = lock_aggregate.tenant_id
      and aggregate_type = lock_aggregate.aggregate_type
      and aggregate_id = lock_aggregate.aggregate_id
    for no key update;
    if found then
      return last;
    end if;
    insert into ticketflow.outbox_aggregates (tenant_id, aggregate_type, aggregate_id, version)
    values (lock_aggregate.tenant_id, lock_aggregate.aggregate_type, lock_aggregate.aggregate_id, 0)
    on conflict do nothing;
    if found then
      return 0;
    end if;
  end loop;
end
$$;

-- The tenant must exist, and must be the session's own where the session has one.
create function ticketflow.check_tenant(tenant_id text) returns void
language plpgsql stable
set search_path = pg_catalog
as $$
#variable_conflict use_column
declare
  own text := nullif(current_setting('ticketflow.tenant', true), '');
begin
  if own is not null and own is distinct from check_tenant.tenant_id then
    raise exception 'this session may not record for tenant %', quote_literal(left(check_tenant.tenant_id, 80))
      using errcode = 'insufficient_privilege',
        hint = 'The setting ticketflow.tenant names another tenant.';
  end if;
  if not exists (select from ticketflow.tenants where tenant_id = check_tenant.tenant_id) then
    raise exception 'tenant % is not known', quote_literal(left(check_tenant.tenant_id, 80))
      using errcode = 'foreign_key_violation', constraint = 'outbox_events_tenant',
        hint = 'Add it first: ticketflow tenant add NAME.';
  end if;
end
$$;

-- The content stored under an identity, compared as the digest compares it; a null version stands
-- for the stored one. Returns null when nothing is stored, else whether it is the same.
create function ticketflow.same_event(
  event_id uuid, tenant_id text, source text, aggregate_type text, aggregate_id text,
  version bigint, event_type text, content_type text, payload bytea)
returns boolean
language plpgsql stable
-- With custom plans every call would plan all partitions.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set search_path = pg_catalog
as $$
declare
  same boolean;
begin
  select e.aggregate_type = $4 and e.aggregate_id = $5
    and coalesce($6, e.version) is not distinct from e.version
    and e.event_type = $7 and e.content_type = $8 and e.payload = $9
  into same
  from ticketflow.outbox_events as e
  where e.event_id = $1 and e.tenant_id = $2 and e.source = $3;
  return same;
end
$$;

create function ticketflow.refuse_identity(event_id uuid) returns void
language plpgsql
set search_path = pg_catalog
as $$
begin
  raise exception 'event % is recorded already, with other content', event_id
    using errcode = 'unique_violation', constraint = 'outbox_events_identity',
      schema = 'ticketflow', table = 'outbox_events',
      hint = 'An event id names one event for ever; a new event needs a new id.';
end
$$;

create function ticketflow.check_event_id(event_id uuid) returns void
language plpgsql volatile
set search_path = pg_catalog
as $$
begin
  if substr(event_id::text, 15, 1) <> '7' then
    raise exception 'event id % is not a UUIDv7', event_id
      using errcode = 'invalid_parameter_value',
        hint = 'Make one with ticketflow.uuid_v7(), once, before any retry.';
  end if;
  if ticketflow.uuid_v7_time(event_id)
    not between clock_timestamp() - interval '1 day' and clock_timestamp() + interval '1 day' then
    raise exception 'event id % was not made within a day of the database''s clock', event_id
      using errcode = 'invalid_parameter_value',
        hint = 'Check the clock of the machine that made it.';
  end if;
end
$$;

create function ticketflow.record_event(
  tenant_id text, aggregate_type text, aggregate_id text, event_type text, payload bytea,
  content_type text default 'application/json', source text default 'ticketflow',
  version bigint default null, headers jsonb default '{}', trace_context jsonb default '{}',
  available_at timestamptz default null, event_id uuid default null)
returns uuid
language plpgsql volatile security definer
set enable_seqscan = off
set search_path = pg_catalog
as $$
#variable_conflict use_column
declare
  delayed boolean := record_event.available_at is not null;
  id uuid := record_event.event_id;
  last bigint;
  next bigint;
  same boolean;
begin
  perform ticketflow.check_event(
    record_event.tenant_id, record_event.aggregate_type, record_event.aggregate_id,
    record_event.event_type, record_event.payload, record_event.content_type, record_event.source,
    record_event.headers, record_event.trace_context);
  -- An event must not be published and then forgotten by a crash.
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  if not delayed then
    last := ticketflow.lock_aggregate(
      record_event.tenant_id, record_event.aggregate_type, record_event.aggregate_id);
  else
    perform ticketflow.check_tenant(record_event.tenant_id);
    if record_event.version is not null then
      raise exception 'an event with available_at has no version'
        using errcode = 'invalid_parameter_value',
          hint = 'A delayed event is outside its aggregate''s order: leave version out.';
    end if;
    if record_event.available_at > clock_timestamp() + interval '7 days' then
      raise exception 'available_at is more than 7 days ahead'
        using errcode = 'invalid_parameter_value',
          hint = 'Receipts are kept for a window that counts on at most 7 days of delay.';
    end if;
    -- Takes the transaction id before position is drawn, as the counter's lock does otherwise.
    perform pg_current_xact_id();
  end if;
  if not delayed then
    next := coalesce(record_event.version, last + 1);
  end if;
  if id is null then
    id := ticketflow.uuid_v7();
  elsif next <= last or ticketflow.uuid_v7_time(id)
    not between clock_timestamp() - interval '1 day' and clock_timestamp() + interval '1 day'
    or substr(id::text, 15, 1) <> '7' then
    -- A new event could not be recorded so; it may still be one that was recorded before. Looked
    -- up under the counter's lock and in a statement of its own, so that it sees what the former
    -- holder of the lock committed.
    same := ticketflow.same_event(
      id, record_event.tenant_id, record_event.source, record_event.aggregate_type,
      record_event.aggregate_id, record_event.version, record_event.event_type,
      record_event.content_type, record_event.payload);
    if same then
      return id;
    elsif not same then
      perform ticketflow.refuse_identity(id);
    end if;
    perform ticketflow.check_event_id(id);
  end if;
  if next <= last then
    raise exception 'version % is not above the last one, %', next, last
      using errcode = 'invalid_parameter_value',
        hint = 'Leave version out for the next one, or take it from ticketflow.lock_aggregate.';
  end if;
  insert into ticketflow.outbox_events (
    event_id, position, tenant_id, source, aggregate_type, aggregate_id, version, previous_version,
    lane, event_type, content_type, payload, headers, trace_context, available_at, held)
  values (
    id, nextval('ticketflow.outbox_position'), record_event.tenant_id, record_event.source,
    record_event.aggregate_type, record_event.aggregate_id, next, last,
    ticketflow.lane_of(record_event.tenant_id, record_event.aggregate_type, record_event.aggregate_id),
    record_event.event_type, record_event.content_type, record_event.payload, record_event.headers,
    record_event.trace_context, record_event.available_at, delayed)
  on conflict do nothing;
  if not found then
    -- Recorded before, or at the same moment: nothing is bumped, and the content decides.
    if ticketflow.same_event(
      id, record_event.tenant_id, record_event.source, record_event.aggregate_type,
      record_event.aggregate_id, record_event.version, record_event.event_type,
      record_event.content_type, record_event.payload) is not true then
      perform ticketflow.refuse_identity(id);
    end if;
    return id;
  end if;
  if not delayed then
    update ticketflow.outbox_aggregates set version = next
    where tenant_id = record_event.tenant_id and aggregate_type = record_event.aggregate_type
      and aggregate_id = record_event.aggregate_id;
  end if;
  -- A hint for an idle relay. Off by default: within a transaction it serialises all commits.
  if current_setting('ticketflow.notify', true) = 'on' then
    perform pg_notify('ticketflow_outbox', '');
  end if;
  return id;
end
$$;

-- The same with the payload as text: its UTF-8 bytes are stored. (A literal given to a bytea
-- parameter would lose its backslashes.)
create function ticketflow.record_event(
  tenant_id text, aggregate_type text, aggregate_id text, event_type text, payload text,
  content_type text default 'application/json', source text default 'ticketflow',
  version bigint default null, headers jsonb default '{}', trace_context jsonb default '{}',
  available_at timestamptz default null, event_id uuid default null)
returns uuid
language sql volatile
set search_path = pg_catalog
as $$
  select ticketflow.record_event(
    tenant_id, aggregate_type, aggregate_id, event_type, convert_to(payload, 'UTF8'), content_type,
    source, version, headers, trace_context, available_at, event_id)
$$;

-- Many events in one round trip, in the order of the arrays; of the optional ones each is null or
-- as long as the others. All counters are locked first, in key order, so that two callers with the
-- same aggregates never wait for each other; the same aggregate, or the same event id, may come
-- several times.
create function ticketflow.record_events(
  tenant_ids text[], aggregate_types text[], aggregate_ids text[], event_types text[],
  payloads bytea[], content_types text[] default null, sources text[] default null,
  versions bigint[] default null, headers jsonb[] default null, trace_contexts jsonb[] default null,
  available_ats timestamptz[] default null, event_ids uuid[] default null)
returns uuid[]
language plpgsql volatile security definer
set search_path = pg_catalog
as $$
declare
  ids uuid[] := '{}';
  many constant integer := coalesce(cardinality(tenant_ids), 0);
begin
  if exists (
    select from (values
      (cardinality(aggregate_types)), (cardinality(aggregate_ids)), (cardinality(event_types)),
      (cardinality(payloads)), (coalesce(cardinality(content_types), many)),
      (coalesce(cardinality(sources), many)), (coalesce(cardinality(versions), many)),
      (coalesce(cardinality(headers), many)), (coalesce(cardinality(trace_contexts), many)),
      (coalesce(cardinality(available_ats), many)), (coalesce(cardinality(event_ids), many))
    ) as lengths (length)
    where length is distinct from many
  ) then
    raise exception 'the arrays differ in length'
      using errcode = 'array_subscript_error',
        hint = 'Each array has one element for each event; leave an optional one out for defaults.';
  end if;
  perform ticketflow.check_event(
    tenant_ids[i], aggregate_types[i], aggregate_ids[i], event_types[i], payloads[i],
    coalesce(content_types[i], 'application/json'), coalesce(sources[i], 'ticketflow'),
    coalesce(headers[i], '{}'), coalesce(trace_contexts[i], '{}'))
  from generate_series(1, many) as i;
  perform ticketflow.lock_aggregate(tenant_id, aggregate_type, aggregate_id)
  from (
    select distinct tenant_ids[i] collate "C" as tenant_id,
      aggregate_types[i] collate "C" as aggregate_type,
      aggregate_ids[i] collate "C" as aggregate_id
    from generate_series(1, many) as i
    where available_ats[i] is null
    order by 1, 2, 3
  ) as sorted;
  for i in 1 .. many loop
    ids := ids || ticketflow.record_event(
      tenant_ids[i], aggregate_types[i], aggregate_ids[i], event_types[i], payloads[i],
      coalesce(content_types[i], 'application/json'), coalesce(sources[i], 'ticketflow'),
      versions[i], coalesce(headers[i], '{}'), coalesce(trace_contexts[i], '{}'),
      available_ats[i], event_ids[i]);
  end loop;
  return ids;
end
$$;

-- Whether a key may still be used.
create function ticketflow.is_live(key ticketflow.tenant_keys) returns boolean
language sql volatile
return (key).revoked_at is null and ((key).expires_at is null or (key).expires_at > clock_timestamp());

-- Whose key it is, for a live key of a known tenant. The producer may call this before it has a
-- tenant; it sees no key but the one it presents.
create function ticketflow.tenant_of_key(key_hash bytea)
returns table (tenant_id text, rate_per_second integer, rate_burst integer)
language plpgsql stable rows 1 security definer
set enable_seqscan = off
set search_path = pg_catalog
as $$
#variable_conflict use_column
begin
  return query
    select t.tenant_id::text, t.rate_per_second, t.rate_burst
    from ticketflow.tenant_keys as k
    join ticketflow.tenants as t using (tenant_id)
    where k.key_hash = $1 and ticketflow.is_live(k);
end
$$;

-- Full-text search of one tenant. Through a definer, since @@ is not leakproof and the index would
-- not be used under a policy; the session's tenant is the predicate.
create function ticketflow.search_tickets(query text, status text, after uuid, most integer)
returns table (ticket_id uuid)
language sql stable security definer
set search_path = pg_catalog
as $$
  -- On its own, else the limit makes a walk through all of the tenant's documents look cheap.
  with found as materialized (
    select d.ticket_id, d.status
    from ticketflow.search_documents as d
    where d.tenant_id = (select nullif(current_setting('ticketflow.tenant', true), ''))
      and d.document @@ websearch_to_tsquery('simple', search_tickets.query)
  )
  select found.ticket_id
  from found
  where (search_tickets.status is null or found.status = search_tickets.status)
    and (search_tickets.after is null or found.ticket_id < search_tickets.after)
  order by found.ticket_id desc
  limit search_tickets.most
$$;

reset role;
revoke create on schema ticketflow from ticketflow_definer;
