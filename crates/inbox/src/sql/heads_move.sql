update ticketflow.effect_heads as head
set version = given.version
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
  as given (tenant_id, aggregate_type, aggregate_id, version)
where head.effect_name = $5::text and head.tenant_id = given.tenant_id
  and head.aggregate_type = given.aggregate_type and head.aggregate_id = given.aggregate_id
