\set tenant random(0, 15)
with made as materialized (
  select 'c' || lpad((:tenant)::text, 5, '0') as tenant_id, gen_random_uuid() as ticket_id,
    ticketflow.uuid_v7() as event_id, repeat('lorem ipsum ', 20) as body
),
ticket as (
  insert into ticketflow.tickets (tenant_id, ticket_id, version, subject, body, priority)
  select tenant_id, ticket_id, 1, 'A ticket of the bench', body, 'normal' from made
  returning tenant_id, ticket_id, version, subject, body, status, priority, assignee, created_at, updated_at
),
counter as (
  insert into ticketflow.outbox_aggregates (tenant_id, aggregate_type, aggregate_id, version)
  select tenant_id, 'ticket', ticket_id::text, 1 from made
)
insert into ticketflow.outbox_events (
  event_id, position, tenant_id, source, aggregate_type, aggregate_id, version, previous_version,
  lane, event_type, content_type, payload)
select made.event_id, nextval('ticketflow.outbox_position'), made.tenant_id, 'ticketflow', 'ticket',
  made.ticket_id::text, 1, 0, ticketflow.lane_of(made.tenant_id, 'ticket', made.ticket_id::text),
  'ticket.created', 'application/json',
  convert_to('{"event_type":"ticket.created","ticket":' || row_to_json(ticket) || ',"payload": null}', 'UTF8')
from made
join ticket using (ticket_id);
