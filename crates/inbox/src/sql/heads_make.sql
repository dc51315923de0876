-- In key order, like every lock here.
insert into ticketflow.effect_heads (effect_name, tenant_id, aggregate_type, aggregate_id)
select $4::text, given.tenant_id, given.aggregate_type, given.aggregate_id
from unnest($1::text[], $2::text[], $3::text[]) as given (tenant_id, aggregate_type, aggregate_id)
on conflict do nothing
