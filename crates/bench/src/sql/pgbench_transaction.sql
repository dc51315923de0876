\set tenant random(0, 15)
begin;
insert into ticketflow.tickets (tenant_id, ticket_id, version, subject, body, priority)
values ('c' || lpad((:tenant)::text, 5, '0'), gen_random_uuid(), 1, 'A ticket of the bench',
  repeat('lorem ipsum ', 20), 'normal')
returning tenant_id, ticket_id \gset
insert into ticketflow.outbox_aggregates (tenant_id, aggregate_type, aggregate_id, version)
values (:tenant_id::text, 'ticket', :ticket_id::text, 1);
insert into ticketflow.outbox_events (
  event_id, position, tenant_id, source, aggregate_type, aggregate_id, version, previous_version,
  lane, event_type, content_type, payload)
select ticketflow.uuid_v7(), nextval('ticketflow.outbox_position'), t.tenant_id, 'ticketflow', 'ticket',
  t.ticket_id::text, 1, 0, ticketflow.lane_of(t.tenant_id, 'ticket', t.ticket_id::text),
  'ticket.created', 'application/json',
  convert_to('{"event_type":"ticket.created","ticket":' || row_to_json(t) || ',"payload": null}', 'UTF8')
from ticketflow.tickets as t
where t.tenant_id = :tenant_id::text and t.ticket_id = :ticket_id::uuid;
commit;
