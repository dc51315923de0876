-- Revokes the live key whose hash starts so, or with a number of seconds lets it expire then.
update ticketflow.tenant_keys
set revoked_at = case when $3::float8 is null then clock_timestamp() end,
  expires_at = case
    when $3::float8 is null then expires_at
    else least(expires_at, clock_timestamp() + make_interval(secs => $3::float8))
  end
where tenant_id = $1::text and starts_with(encode(key_hash, 'hex'), $2::text)
  and revoked_at is null and (expires_at is null or expires_at > clock_timestamp())
returning left(encode(key_hash, 'hex'), 12) as key_id
