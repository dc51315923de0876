select state, count(*) as rows from ticketflow.deferred_deliveries group by state
