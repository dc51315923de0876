-- The sort is below the lock, so rows are locked in key order; each is read as it is once locked.
select given.place, head.version
from unnest($1::text[], $2::text[], $3::text[]) with ordinality
  as given (tenant_id, aggregate_type, aggregate_id, place)
join ticketflow.effect_heads as head
  on head.effect_name = $4::text and head.tenant_id = given.tenant_id
  and head.aggregate_type = given.aggregate_type and head.aggregate_id = given.aggregate_id
order by head.tenant_id, head.aggregate_type, head.aggregate_id
for update of head
