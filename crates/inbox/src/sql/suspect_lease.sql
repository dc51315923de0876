-- The try of a suspect is written down before it is made. A lease that ran out is a process that
-- died with it, unless the server itself was away while it ran.
with found as materialized (
  select delivery_id,
    kills + case
      when lease_token is not null
        and leased_until - make_interval(secs => $5) > pg_postmaster_start_time() then 1
      else 0 end as kills
  from ticketflow.deferred_deliveries
  where delivery_id = $1 and changed_at = $2::text::timestamptz and state = 'suspect'
    and next_attempt_at <= clock_timestamp()
    and (lease_token is null or leased_until <= clock_timestamp())
  for update
)
update ticketflow.deferred_deliveries as suspect
set kills = found.kills, changed_at = clock_timestamp(),
  state = case when found.kills >= $6 then 'parked' else 'suspect' end,
  reason = case when found.kills >= $6 then 'kills' else suspect.reason end,
  next_attempt_at = case when found.kills < $6 then suspect.next_attempt_at end,
  lease_token = case when found.kills < $6 then $3::uuid end,
  leased_by = case when found.kills < $6 then $4 end,
  leased_until = case when found.kills < $6
    then clock_timestamp() + make_interval(secs => $5) end
from found
where suspect.delivery_id = found.delivery_id
returning suspect.state, suspect.changed_at::text
