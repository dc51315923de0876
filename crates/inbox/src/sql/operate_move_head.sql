update ticketflow.effect_heads
set version = $6::bigint
where effect_name = $1::text and tenant_id = $2::text and aggregate_type = $3::text
  and aggregate_id = $4::text and version = $5::bigint
