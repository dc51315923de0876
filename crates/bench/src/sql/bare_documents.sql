-- The rows that the search effect writes.
insert into ticketflow.search_documents as document (
  tenant_id, ticket_id, version, subject, body, status, priority, assignee, updated_at)
select given.tenant_id, given.ticket_id, given.version, given.subject, given.body, 'open', 'normal',
  null, given.updated_at
from unnest($1::text[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::timestamptz[])
  as given (tenant_id, ticket_id, version, subject, body, updated_at)
on conflict (tenant_id, ticket_id) do update set
  version = excluded.version, subject = excluded.subject, body = excluded.body,
  status = excluded.status, priority = excluded.priority, assignee = excluded.assignee,
  updated_at = excluded.updated_at
where document.version < excluded.version
