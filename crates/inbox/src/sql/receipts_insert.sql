-- The arrays are in key order and unnest keeps it, so that receipts are locked in that order. A
-- parallel duplicate waits here for the first one. Only the receipt's own key means duplicate.
insert into ticketflow.effect_receipts (event_id, tenant_id, source, effect_name, digest)
select given.event_id, given.tenant_id, given.source, $5::text, given.digest
from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[])
  as given (event_id, tenant_id, source, digest)
on conflict (event_id, tenant_id, source, effect_name) do nothing
returning event_id, tenant_id, source
