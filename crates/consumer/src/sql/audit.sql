-- In the order given: entry_id is drawn in it.
insert into ticketflow.audit_entries (
  tenant_id, aggregate_type, aggregate_id, version, event_id, source, event_type, digest,
  occurred_at, late, gap)
select given.tenant_id, given.aggregate_type, given.aggregate_id, given.version, given.event_id,
  given.source, given.event_type, given.digest, given.occurred_at, given.late, given.gap
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::uuid[], $6::text[], $7::text[],
    $8::bytea[], $9::timestamptz[], $10::boolean[], $11::boolean[])
  as given (tenant_id, aggregate_type, aggregate_id, version, event_id, source, event_type, digest,
    occurred_at, late, gap)
