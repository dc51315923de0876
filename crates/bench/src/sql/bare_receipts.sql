-- Receipts and nothing else.
insert into ticketflow.effect_receipts (event_id, tenant_id, source, effect_name, digest)
select given.event_id, given.tenant_id, given.source, 'search', given.digest
from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[])
  as given (event_id, tenant_id, source, digest)
on conflict do nothing
