insert into ticketflow.tenants (tenant_id, pool, rate_per_second, rate_burst)
values ($1::text, $2::text, $3::integer, $4::integer)
on conflict (tenant_id) do nothing
returning tenant_id::text
