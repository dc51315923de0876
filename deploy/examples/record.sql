-- Records an event in the transaction of a business change, from psql:
--   psql "$DATABASE_URL" -f deploy/examples/record.sql
\set ON_ERROR_STOP on

create table if not exists invoices (id text primary key, paid boolean not null);

-- Made once, before the transaction: whoever has to repeat it gives the same id again, and there
-- is no second event.
select ticketflow.uuid_v7() as event_id \gset

begin;
insert into invoices values ('2026-118', true) on conflict (id) do update set paid = true;
-- As text: a literal given to the form for bytea would lose its backslashes.
select ticketflow.record_event(
  'default', 'invoice', '2026-118', 'invoice.paid', '{"path":"C:\\temp"}'::text,
  source => 'billing', headers => '{"region":"eu"}', event_id => :'event_id');
commit;

-- A reminder that is published in an hour, whatever becomes of the invoice's other events.
select ticketflow.record_event(
  'default', 'invoice', '2026-118', 'invoice.reminder', '{"path":"C:\\temp"}'::text,
  source => 'billing', available_at => clock_timestamp() + interval '1 hour');

-- Many in one round trip.
select ticketflow.record_events(
  array['default', 'default'], array['invoice', 'invoice'], array['2026-119', '2026-120'],
  array['invoice.sent', 'invoice.sent'],
  array[convert_to('{"path":"C:\\temp"}', 'UTF8'), convert_to('{}', 'UTF8')],
  sources => array['billing', 'billing']);
