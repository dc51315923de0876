select tenant_id::text, ticket_id::text, version from ticketflow.search_documents
