-- One version of each ticket, in key order; an older one never replaces a newer one.
insert into ticketflow.search_documents as document (
  tenant_id, ticket_id, version, subject, body, status, priority, assignee, updated_at)
select given.tenant_id, given.ticket_id, given.version, given.subject, given.body, given.status,
  given.priority, given.assignee, given.updated_at
from unnest($1::text[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::timestamptz[])
  as given (tenant_id, ticket_id, version, subject, body, status, priority, assignee, updated_at)
on conflict (tenant_id, ticket_id) do update set
  version = excluded.version, subject = excluded.subject, body = excluded.body,
  status = excluded.status, priority = excluded.priority, assignee = excluded.assignee,
  updated_at = excluded.updated_at
where document.version < excluded.version
