select exists (select from ticketflow.outbox_events where state = 'pending')
