select (select count(*) from ticketflow.tickets), (select count(*) from ticketflow.outbox_events)
