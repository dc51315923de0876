-- Partitions of the outbox and of the receipts: a day each, plus a default one that keeps
-- producers going if nobody made them. Each function is one step and one short transaction for
-- its caller, gives up after 100 ms of waiting for a lock (55P03: try again), and is harmless when
-- two run at once.
set local role ticketflow_owner;

create table ticketflow.outbox_events_default partition of ticketflow.outbox_events default;
alter table ticketflow.outbox_events_default set (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05);
create table ticketflow.effect_receipts_default partition of ticketflow.effect_receipts default;

create function ticketflow.partition_name(parent text, day date) returns text
language sql immutable strict parallel safe
set search_path = pg_catalog
as $$
  select parent || '_' || to_char(day, 'YYYYMMDD')
$$;

-- Makes the partition of a day (UTC) and moves that day's rows out of the default one. True if it
-- made one, false if it was there.
create function ticketflow.make_partition(parent text, day date) returns boolean
language plpgsql security definer
set search_path = pg_catalog
set lock_timeout = '100ms'
as $$
declare
  name text := ticketflow.partition_name(parent, day);
  low uuid := ticketflow.uuid_v7_floor(day::timestamp at time zone 'UTC');
  high uuid := ticketflow.uuid_v7_floor((day + 1)::timestamp at time zone 'UTC');
begin
  if parent not in ('outbox_events', 'effect_receipts') then
    raise exception 'no partitions are made for %', parent using errcode = 'invalid_parameter_value';
  end if;
  -- Only one maker at a time, in the mode that attaching takes anyway: no reader or writer waits.
  execute format('lock table ticketflow.%I in share update exclusive mode', parent);
  if to_regclass(format('ticketflow.%I', name)) is not null then
    return false;
  end if;
  execute format('create table ticketflow.%I (like ticketflow.%I including all)', name, parent);
  execute format(
    'alter table ticketflow.%I add constraint %I check (event_id >= %L and event_id < %L)',
    name, name || '_day', low, high);
  if parent = 'outbox_events' then
    execute format(
      'alter table ticketflow.%I set (autovacuum_vacuum_scale_factor = 0.02, '
      'autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05)', name);
  end if;
  execute format('lock table ticketflow.%I in access exclusive mode', parent || '_default');
  execute format(
    'with moved as (delete from ticketflow.%I where event_id >= %L and event_id < %L returning *) '
    'insert into ticketflow.%I select * from moved', parent || '_default', low, high, name);
  execute format(
    'alter table ticketflow.%I attach partition ticketflow.%I for values from (%L) to (%L)',
    parent, name, low, high);
  return true;
end
$$;

-- The partitions of a table with their days, oldest first; the default one is not listed.
create function ticketflow.partitions_of(parent text)
returns table (name text, day date)
language sql stable strict
set search_path = pg_catalog
as $$
  select child.relname::text, to_date(right(child.relname, 8), 'YYYYMMDD')
  from pg_inherits
  join pg_class as child on child.oid = inhrelid
  where inhparent = format('ticketflow.%I', parent)::regclass
    and child.relname ~ ('^' || parent || '_[0-9]{8}$')
  order by 2
$$;

-- Empties the partition of a day. An outbox partition in which something is still pending or
-- parked stays as it is, and the answer is false.
create function ticketflow.truncate_partition(parent text, day date) returns boolean
language plpgsql security definer
set search_path = pg_catalog
set lock_timeout = '100ms'
as $$
declare
  name text := ticketflow.partition_name(parent, day);
  waiting boolean;
begin
  if parent not in ('outbox_events', 'effect_receipts') then
    raise exception 'no partitions are made for %', parent using errcode = 'invalid_parameter_value';
  end if;
  if to_regclass(format('ticketflow.%I', name)) is null then
    return false;
  end if;
  -- Whoever queues behind a waiting exclusive lock waits as long as we do: producers not at all.
  -- Receipts are locked, for a moment and with all their partitions, by every batch of every
  -- consumer, so that a lock that never waits is never given.
  if parent = 'effect_receipts' then
    execute format('lock table ticketflow.%I in access exclusive mode', name);
  else
    execute format('lock table ticketflow.%I in access exclusive mode nowait', name);
  end if;
  if parent = 'outbox_events' then
    execute format(
      'select exists (select from ticketflow.%I where state in (''pending'', ''parked''))', name)
      into waiting;
    if waiting then
      return false;
    end if;
  end if;
  execute format('truncate ticketflow.%I', name);
  return true;
end
$$;

-- Detaches and drops the empty partition of a day. False if it is not there or not empty.
create function ticketflow.drop_partition(parent text, day date) returns boolean
language plpgsql security definer
set search_path = pg_catalog
set lock_timeout = '100ms'
as $$
declare
  name text := ticketflow.partition_name(parent, day);
  filled boolean;
begin
  if parent not in ('outbox_events', 'effect_receipts') then
    raise exception 'no partitions are made for %', parent using errcode = 'invalid_parameter_value';
  end if;
  if to_regclass(format('ticketflow.%I', name)) is null then
    return false;
  end if;
  execute format('select exists (select from ticketflow.%I)', name) into filled;
  if filled then
    return false;
  end if;
  execute format('alter table ticketflow.%I detach partition ticketflow.%I', parent, name);
  -- The parent is locked now, so nobody can have put a row in since; look again all the same.
  execute format('select exists (select from ticketflow.%I)', name) into filled;
  if filled then
    raise exception 'partition % was filled while it was detached', name
      using errcode = 'lock_not_available';
  end if;
  execute format('drop table ticketflow.%I', name);
  return true;
end
$$;

select ticketflow.make_partition(parent, (clock_timestamp() at time zone 'UTC')::date + ahead)
from unnest(array['outbox_events', 'effect_receipts']) as parent,
  generate_series(-1, 14) as ahead;

reset role;
