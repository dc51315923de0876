-- What the producer calls: a ticket, its event and its idempotency key in one statement, which is
-- one transaction and one round trip. They run as the caller, under row security: each first
-- proves the caller's key and sets the tenant for this transaction only.
grant create on schema ticketflow to ticketflow_definer;
set local role ticketflow_definer;

-- What an event of the tickets' own source was recorded with, for a caller whose answer got lost.
create function ticketflow.written_ticket(
  tenant_id text, event_id uuid, out version bigint, out ticket text)
language plpgsql stable security definer
-- With custom plans every call would plan all partitions.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set search_path = pg_catalog
as $$
#variable_conflict use_column
begin
  select e.version, (convert_from(e.payload, 'UTF8')::json -> 'ticket')::text
  into version, ticket
  from ticketflow.outbox_events as e
  where e.event_id = $2 and e.source = 'ticketflow' and e.tenant_id = $1
    and e.aggregate_type = 'ticket'
    and e.tenant_id = (select nullif(current_setting('ticketflow.tenant', true), ''));
end
$$;

-- The first event of a ticket that nobody knows of yet, for the tenant of this transaction: what
-- record_event does, less what cannot be there. False if its counter is there after all.
create function ticketflow.record_new_ticket(
  tenant_id text, ticket_id uuid, event_id uuid, payload bytea, trace_context jsonb)
returns boolean
language plpgsql volatile security definer
set enable_seqscan = off
set search_path = pg_catalog
as $$
begin
  if current_setting('ticketflow.tenant', true) is distinct from $1 then
    perform ticketflow.check_tenant($1);
  end if;
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  with counter as (
    insert into ticketflow.outbox_aggregates (tenant_id, aggregate_type, aggregate_id, version)
    select t.tenant_id, 'ticket', $2::text, 1 from ticketflow.tenants as t where t.tenant_id = $1
    on conflict do nothing
    returning aggregate_id)
  insert into ticketflow.outbox_events (
    event_id, position, tenant_id, source, aggregate_type, aggregate_id, version, previous_version,
    lane, event_type, content_type, payload, trace_context)
  select
    $3, nextval('ticketflow.outbox_position'), $1, 'ticketflow', 'ticket', counter.aggregate_id, 1, 0,
    ticketflow.lane_of($1, 'ticket', counter.aggregate_id), 'ticket.created', 'application/json',
    $4, $5
  from counter;
  if found then
    return true;
  end if;
  perform ticketflow.check_tenant($1);
  return false;
end
$$;

-- The tenant of this transaction, if the key is a live one of it.
create function ticketflow.enter(tenant_id text, key_hash bytea) returns boolean
language plpgsql volatile security definer
set enable_seqscan = off
set search_path = pg_catalog
as $$
#variable_conflict use_column
begin
  perform from ticketflow.tenant_keys as k
  where k.key_hash = $2 and k.tenant_id = $1 and ticketflow.is_live(k);
  if not found then
    return false;
  end if;
  perform set_config('ticketflow.tenant', $1, true);
  return true;
end
$$;

-- Idempotency keys are kept for long enough that no client still repeats a request.
create function ticketflow.forget_idempotency_keys(older_than interval, most integer)
returns bigint
language sql volatile security definer
set search_path = pg_catalog
as $$
  with old as materialized (
    select tenant_id, idempotency_key from ticketflow.idempotency_keys
    where created_at < clock_timestamp() - forget_idempotency_keys.older_than
    order by created_at limit forget_idempotency_keys.most for update skip locked),
  gone as (
    delete from ticketflow.idempotency_keys as k using old
    where (k.tenant_id, k.idempotency_key) = (old.tenant_id, old.idempotency_key) returning 1)
  select count(*) from gone
$$;

grant execute on function ticketflow.written_ticket(text, uuid), ticketflow.enter(text, bytea),
  ticketflow.record_new_ticket(text, uuid, uuid, bytea, jsonb),
  ticketflow.forget_idempotency_keys(interval, integer) to ticketflow_producer;

reset role;
revoke create on schema ticketflow from ticketflow_definer;
set local role ticketflow_owner;

grant select, delete on ticketflow.idempotency_keys to ticketflow_definer;
grant update (status, response, etag, location) on ticketflow.idempotency_keys
  to ticketflow_producer;

create type ticketflow.ticket_answer as (
  -- created, updated, replayed; or reused (the key, for another request), in_flight, unauthorized,
  -- missing, stale: nothing was written.
  outcome text,
  response text,
  etag text,
  location text
);

-- All columns of a ticket, as the event, the answers and the effects have them.
create function ticketflow.ticket_json(t ticketflow.tickets) returns text
language sql stable parallel safe
as $$
  select '{"tenant_id":"' || t.tenant_id || '","ticket_id":"' || t.ticket_id
    || '","version":' || t.version || ',"subject":' || to_json(t.subject)
    || ',"body":' || to_json(t.body) || ',"status":"' || t.status
    || '","priority":"' || t.priority || '","assignee":' || coalesce(to_json(t.assignee)::text, 'null')
    || ',"created_at":"' || to_char(t.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || '","updated_at":"' || to_char(t.updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || '"}'
$$;

-- Takes the key for this transaction, or says what is known of it. Waits for another transaction
-- that has taken it, as long as lock_timeout allows.
create function ticketflow.take_idempotency_key(
  tenant_id text, idempotency_key text, request_digest bytea)
returns ticketflow.ticket_answer
language plpgsql volatile
set enable_seqscan = off
set search_path = pg_catalog
as $$
declare
  known ticketflow.idempotency_keys;
begin
  begin
    insert into ticketflow.idempotency_keys (tenant_id, idempotency_key, request_digest)
    values ($1, $2, $3)
    on conflict do nothing;
    if found then
      return row('taken', null, null, null)::ticketflow.ticket_answer;
    end if;
  exception when lock_not_available then
    return row('in_flight', null, null, null)::ticketflow.ticket_answer;
  end;
  -- A statement of its own, so that it sees what the one it waited for has committed.
  select * into known from ticketflow.idempotency_keys as k
  where k.tenant_id = $1 and k.idempotency_key = $2;
  if known.request_digest is distinct from $3 then
    return row('reused', null, null, null)::ticketflow.ticket_answer;
  end if;
  return row('replayed', convert_from(known.response, 'UTF8'), known.etag, known.location)
    ::ticketflow.ticket_answer;
end
$$;

-- The answer to a change.
create function ticketflow.answer_ticket(
  outcome text, ticket_id uuid, version bigint, ticket text, event_id uuid)
returns ticketflow.ticket_answer
language sql immutable parallel safe
return row(
  outcome, left(ticket, -1) || ',"event_id":"' || event_id || '"}', '"' || version || '"',
  '/v1/tickets/' || ticket_id)::ticketflow.ticket_answer;

-- Keeps the answer to a change under its idempotency key.
create function ticketflow.keep_answer(
  tenant_id text, idempotency_key text, answer ticketflow.ticket_answer)
returns void
language plpgsql volatile
set enable_seqscan = off
set search_path = pg_catalog
as $$
begin
  update ticketflow.idempotency_keys as k
  set status = case ($3).outcome when 'created' then 201 else 200 end,
    response = convert_to(($3).response, 'UTF8'), etag = ($3).etag, location = ($3).location
  where k.tenant_id = $1 and k.idempotency_key = $2;
end
$$;

-- A new ticket and its event, for the tenant of this transaction. Repeated with the same ids it
-- changes nothing and gives the first answer.
create function ticketflow.insert_ticket(
  tenant_id text, ticket_id uuid, event_id uuid, subject text, body text, priority text,
  assignee text, payload bytea, trace_context jsonb, out version bigint, out ticket text)
language plpgsql volatile
set enable_seqscan = off
set search_path = pg_catalog
as $$
#variable_conflict use_column
declare
  moment constant timestamptz := clock_timestamp();
  head constant bytea := '{"event_type":"ticket.created","ticket":';
  fresh ticketflow.tickets;
  last bigint;
begin
  fresh := row($1, $2, 1, $4, $5, 'open', $6, $7, moment, moment);
  ticket := ticketflow.ticket_json(fresh);
  if not ticketflow.record_new_ticket(
    $1, $2, $3, head || convert_to(ticket, 'UTF8') || ',"payload":' || $8 || '}', $9)
  then
    last := ticketflow.lock_aggregate($1, 'ticket', $2::text);
    select w.version, w.ticket into version, ticket from ticketflow.written_ticket($1, $3) as w;
    if version is not null then
      return;
    end if;
    -- Others have recorded events for it: its versions go on from there.
    fresh.version := last + 1;
    ticket := ticketflow.ticket_json(fresh);
    perform ticketflow.record_event(
      $1, 'ticket', $2::text, 'ticket.created',
      head || convert_to(ticket, 'UTF8') || ',"payload":' || $8 || '}',
      version => fresh.version, trace_context => $9, event_id => $3);
  end if;
  version := fresh.version;
  insert into ticketflow.tickets (
    tenant_id, ticket_id, version, subject, body, priority, assignee, created_at, updated_at)
  values ($1, $2, fresh.version, $4, $5, $6, $7, moment, moment);
end
$$;

-- POST /v1/tickets.
create function ticketflow.create_ticket(
  tenant_id text, key_hash bytea, ticket_id uuid, event_id uuid, subject text, body text,
  priority text, assignee text, payload bytea, trace_context jsonb, idempotency_key text,
  request_digest bytea)
returns ticketflow.ticket_answer
language plpgsql volatile
set search_path = pg_catalog
as $$
declare
  known ticketflow.ticket_answer;
  answer ticketflow.ticket_answer;
  made record;
begin
  if not ticketflow.enter($1, $2) then
    return row('unauthorized', null, null, null)::ticketflow.ticket_answer;
  end if;
  if $11 is not null then
    known := ticketflow.take_idempotency_key($1, $11, $12);
    if known.outcome <> 'taken' then
      return known;
    end if;
  end if;
  made := ticketflow.insert_ticket($1, $3, $4, $5, $6, $7, $8, $9, $10);
  answer := ticketflow.answer_ticket('created', $3, made.version, made.ticket, $4);
  if $11 is not null then
    perform ticketflow.keep_answer($1, $11, answer);
  end if;
  return answer;
end
$$;

-- Many new tickets of one tenant, in the order of their ids, so that two imports of one file wait
-- for each other in no circle. Those that are there already are left as they are. Returns how many
-- were made.
create function ticketflow.import_tickets(
  tenant_id text, ticket_ids uuid[], event_ids uuid[], subjects text[], bodies text[],
  priorities text[], assignees text[], payloads bytea[])
returns bigint
language plpgsql volatile
set enable_seqscan = off
set search_path = pg_catalog
as $$
#variable_conflict use_column
declare
  made bigint := 0;
  i integer;
begin
  perform set_config('ticketflow.tenant', $1, true);
  for i in
    select place from unnest($2) with ordinality as ids (id, place) order by id, place
  loop
    perform from ticketflow.tickets where tenant_id = $1 and ticket_id = $2[i];
    if not found then
      perform ticketflow.insert_ticket(
        $1, $2[i], $3[i], $4[i], $5[i], $6[i], $7[i], $8[i], '{}');
      made := made + 1;
    end if;
  end loop;
  return made;
end
$$;

-- PATCH /v1/tickets/{id}. A null leaves the column as it is; assignee only if set_assignee says
-- so. expected are the versions the caller will have changed, null for any.
create function ticketflow.update_ticket(
  tenant_id text, key_hash bytea, ticket_id uuid, event_id uuid, expected bigint[], subject text,
  body text, status text, priority text, assignee text, set_assignee boolean, payload bytea,
  trace_context jsonb, idempotency_key text, request_digest bytea)
returns ticketflow.ticket_answer
language plpgsql volatile
set enable_seqscan = off
set search_path = pg_catalog
as $$
#variable_conflict use_column
declare
  known ticketflow.ticket_answer;
  answer ticketflow.ticket_answer;
  made record;
begin
  if not ticketflow.enter($1, $2) then
    return row('unauthorized', null, null, null)::ticketflow.ticket_answer;
  end if;
  if $14 is not null then
    known := ticketflow.take_idempotency_key($1, $14, $15);
    if known.outcome <> 'taken' then
      return known;
    end if;
  end if;
  made := ticketflow.change_ticket($1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);
  if made.outcome = 'updated' then
    answer := ticketflow.answer_ticket('updated', $3, made.version, made.ticket, $4);
    if $14 is not null then
      perform ticketflow.keep_answer($1, $14, answer);
    end if;
    return answer;
  end if;
  if $14 is not null then
    delete from ticketflow.idempotency_keys where tenant_id = $1 and idempotency_key = $14;
  end if;
  return row(made.outcome, null, null, null)::ticketflow.ticket_answer;
end
$$;

-- The change of update_ticket and its event, for the tenant of this transaction.
create function ticketflow.change_ticket(
  tenant_id text, ticket_id uuid, event_id uuid, expected bigint[], subject text, body text,
  status text, priority text, assignee text, set_assignee boolean, payload bytea,
  trace_context jsonb, out outcome text, out version bigint, out ticket text)
language plpgsql volatile
set enable_seqscan = off
set search_path = pg_catalog
as $$
#variable_conflict use_column
declare
  done constant text[] := '{resolved,closed}';
  last bigint;
  event_type text;
  before ticketflow.tickets;
  fresh ticketflow.tickets;
begin
  outcome := 'missing';
  -- Looked at first, so that no counter is made for a ticket that is not there.
  perform from ticketflow.tickets where tenant_id = $1 and ticket_id = $2;
  if not found then
    return;
  end if;
  last := ticketflow.lock_aggregate($1, 'ticket', $2::text);
  select * into before from ticketflow.tickets where tenant_id = $1 and ticket_id = $2;
  if $4 is null or before.version <> all($4) then
    -- Perhaps changed by this very call, whose answer got lost.
    select w.version, w.ticket into version, ticket from ticketflow.written_ticket($1, $3) as w;
    if version is not null then
      outcome := 'updated';
      return;
    elsif $4 is not null then
      outcome := 'stale';
      return;
    end if;
  end if;
  update ticketflow.tickets set
    version = last + 1,
    subject = coalesce($5, subject),
    body = coalesce($6, body),
    status = coalesce($7, status),
    priority = coalesce($8, priority),
    assignee = case when $10 then $9 else assignee end,
    updated_at = clock_timestamp()
  where tenant_id = $1 and ticket_id = $2
  returning * into fresh;
  event_type := case
    when fresh.status = any(done) and before.status <> all(done) then 'ticket.resolved'
    when fresh.status <> all(done) and before.status = any(done) then 'ticket.reopened'
    when fresh.assignee is distinct from before.assignee then 'ticket.assigned'
    else 'ticket.updated'
  end;
  outcome := 'updated';
  version := fresh.version;
  ticket := ticketflow.ticket_json(fresh);
  perform ticketflow.record_event(
    $1, 'ticket', $2::text, event_type,
    convert_to('{"event_type":"' || event_type || '","ticket":' || ticket || ',"payload":', 'UTF8')
      || $11 || '}'::bytea,
    version => fresh.version, trace_context => $12, event_id => $3);
end
$$;

grant execute on function
  ticketflow.ticket_json(ticketflow.tickets),
  ticketflow.take_idempotency_key(text, text, bytea),
  ticketflow.answer_ticket(text, uuid, bigint, text, uuid),
  ticketflow.keep_answer(text, text, ticketflow.ticket_answer),
  ticketflow.insert_ticket(text, uuid, uuid, text, text, text, text, bytea, jsonb),
  ticketflow.import_tickets(text, uuid[], uuid[], text[], text[], text[], text[], bytea[]),
  ticketflow.create_ticket(text, bytea, uuid, uuid, text, text, text, text, bytea, jsonb, text, bytea),
  ticketflow.change_ticket(text, uuid, uuid, bigint[], text, text, text, text, text, boolean, bytea,
    jsonb),
  ticketflow.update_ticket(text, bytea, uuid, uuid, bigint[], text, text, text, text, text, boolean,
    bytea, jsonb, text, bytea)
to ticketflow_producer;

reset role;
