-- Lets the relays at all tenants with a prefix, or holds them off, and says when.
with changed as (
  update ticketflow.tenants set state = $2::text
  where starts_with(tenant_id, $1::text) and state <> $2 returning 1)
select clock_timestamp(), count(*) from changed
