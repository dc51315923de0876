-- So many tenants with a prefix, in a state.
insert into ticketflow.tenants (tenant_id, state)
select $1::text || lpad(n::text, 5, '0'), $3::text from generate_series(0, $2::bigint - 1) as n
on conflict (tenant_id) do update set state = excluded.state
