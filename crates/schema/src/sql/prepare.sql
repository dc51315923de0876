-- What the runner needs before the first migration: the owner of all tables, the schema, and the
-- history, which migrations write to as that owner.
do $$
begin
  if not exists (select from pg_roles where rolname = 'ticketflow_owner') then
    begin
      create role ticketflow_owner nologin;
    exception when duplicate_object or unique_violation then
      null; -- another database of this server made it at the same moment
    end;
  end if;
  if not pg_has_role(current_user, 'ticketflow_owner', 'member') then
    execute format('grant ticketflow_owner to %I', current_user);
  end if;
end
$$;
create schema if not exists ticketflow;
create table if not exists ticketflow.refinery_schema_history (
  version int4 primary key,
  name varchar(255),
  applied_on varchar(255),
  checksum varchar(255)
);
alter table ticketflow.refinery_schema_history owner to ticketflow_owner;
-- Every process compares the version with its own at start.
grant select on ticketflow.refinery_schema_history to public;
