select count(*) from ticketflow.event_conflicts
