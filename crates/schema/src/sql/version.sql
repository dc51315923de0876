select max(version) from ticketflow.refinery_schema_history
