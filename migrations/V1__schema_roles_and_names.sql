-- The schema, one role for each process with the least it needs, and the functions that define
-- what a name, a lane, a digest and an event id are. Roles are shared by all databases of a
-- server, so they may be there already. None of them can log in: a login is granted one of them
-- (`grant ticketflow_relay to …`) and each process takes its role when it connects.
do $$
declare
  wanted text;
begin
  foreach wanted in array array[
    'ticketflow_owner',     -- owns every table and the partition functions
    'ticketflow_definer',   -- owns the functions callers may execute; owns no table
    'ticketflow_recorder',  -- may record events from SQL, and nothing else
    'ticketflow_producer', 'ticketflow_relay', 'ticketflow_consumer', 'ticketflow_operator'
  ] loop
    if not exists (select from pg_roles where rolname = wanted) then
      begin
        execute format('create role %I nologin', wanted);
      exception when duplicate_object or unique_violation then
        null; -- another database of this server made it at the same moment
      end;
    end if;
  end loop;
  -- Whoever migrates must be able to act as the owner; a superuser already is.
  if not pg_has_role(current_user, 'ticketflow_owner', 'member') then
    execute format('grant ticketflow_owner to %I', current_user);
  end if;
  if not pg_has_role(current_user, 'ticketflow_definer', 'member') then
    execute format('grant ticketflow_definer to %I', current_user);
  end if;
end
$$;

create schema if not exists ticketflow;
alter schema ticketflow owner to ticketflow_owner;
set local role ticketflow_owner;

grant usage on schema ticketflow to ticketflow_definer, ticketflow_recorder, ticketflow_producer,
  ticketflow_relay, ticketflow_consumer, ticketflow_operator;
-- Nothing here may be executed unless a role is granted it.
alter default privileges for role ticketflow_owner revoke execute on functions from public;

-- One rule for tenant ids, here and in every process: nothing that means something in a routing
-- key, no case, no alphabet but ASCII.
create domain ticketflow.tenant_id as text collate "C"
  constraint tenant_id_form check (value ~ '^[a-z0-9][a-z0-9_-]{0,62}$');
create domain ticketflow.pool_name as text collate "C"
  constraint pool_name_form check (value ~ '^[a-z0-9][a-z0-9_-]{0,31}$' and value <> 'dead');
create domain ticketflow.effect_name as text collate "C"
  constraint effect_name_form check (value ~ '^[a-z0-9][a-z0-9_-]{0,31}$' and value <> 'dead');
-- Words of a routing key, joined by dots.
create domain ticketflow.dotted_name as text collate "C"
  constraint dotted_name_form check (value ~ '^[a-z0-9_]+(\.[a-z0-9_]+)*$' and octet_length(value) <= 100);
-- An AMQP short string: at most 255 bytes, and no control character.
create domain ticketflow.short_text as text collate "C"
  constraint short_text_form check (
    octet_length(value) between 1 and 255 and value !~ '[\u0001-\u001f\u007f-\u009f]');
create domain ticketflow.lane_number as smallint
  constraint lane_number_range check (value between 0 and 15);

-- A UUIDv7 of now (RFC 9562, section 5.7): 48 bits of milliseconds, the rest random.
create function ticketflow.uuid_v7() returns uuid
language sql volatile parallel safe
return encode(
  set_byte(
    overlay(
      uuid_send(gen_random_uuid())
      placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
      from 1 for 6),
    6, 112 | (get_byte(uuid_send(gen_random_uuid()), 6) & 15)),
  'hex')::uuid;

-- The lowest id of a moment: the bound of partitions, of age and of the receipts' floor.
create function ticketflow.uuid_v7_floor(moment timestamptz) returns uuid
language sql immutable strict parallel safe
return (lpad(to_hex(greatest(floor(extract(epoch from moment) * 1000)::bigint, 0)), 12, '0')
  || '00000000000000000000')::uuid;

-- The moment an id was made, to the millisecond.
create function ticketflow.uuid_v7_time(id uuid) returns timestamptz
language sql immutable strict parallel safe
return to_timestamp(
  ('x' || lpad(encode(substring(uuid_send(id) from 1 for 6), 'hex'), 16, '0'))::bit(64)::bigint
    / 1000.0);

-- The lane of an aggregate: the unit of ownership, 16 for each tenant. Stable as convert_to is,
-- else it could not be inlined.
create function ticketflow.lane_of(tenant_id text, aggregate_type text, aggregate_id text)
returns smallint
language sql stable strict parallel safe
return (get_byte(sha256(convert_to(
  tenant_id || E'\n' || aggregate_type || E'\n' || aggregate_id, 'UTF8')), 0) & 15)::smallint;

-- The content digest: the format byte, then each field behind its length.
create function ticketflow.event_digest(
  event_id uuid, tenant_id text, source text, aggregate_type text, aggregate_id text,
  version bigint, event_type text, content_type text, payload bytea)
returns bytea
language sql immutable parallel safe
set search_path = pg_catalog
as $$
  select sha256('\x01'::bytea || string_agg(int4send(octet_length(field)) || field, ''::bytea order by place))
  from unnest(array[
    convert_to(event_id::text, 'UTF8'), convert_to(tenant_id, 'UTF8'), convert_to(source, 'UTF8'),
    convert_to(aggregate_type, 'UTF8'), convert_to(aggregate_id, 'UTF8'),
    convert_to(coalesce(version::text, ''), 'UTF8'), convert_to(event_type, 'UTF8'),
    convert_to(content_type, 'UTF8'), payload]) with ordinality as fields (field, place)
$$;

grant execute on function
  ticketflow.uuid_v7(), ticketflow.uuid_v7_floor(timestamptz), ticketflow.uuid_v7_time(uuid),
  ticketflow.lane_of(text, text, text),
  ticketflow.event_digest(uuid, text, text, text, text, bigint, text, text, bytea)
to public;

reset role;

alter default privileges for role ticketflow_definer revoke execute on functions from public;
