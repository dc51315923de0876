insert into ticketflow.tenant_keys (tenant_id, key_hash, label, expires_at)
values ($1::text, $2::bytea, $3::text, clock_timestamp() + make_interval(secs => $4::float8))
