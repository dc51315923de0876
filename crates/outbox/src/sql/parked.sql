-- Parked events, the first recorded ones first. No lock: whoever changes one locks its lane and
-- looks again.
select e.event_id, e.tenant_id, e.source, e.lane, e.last_error
from ticketflow.outbox_events as e
where e.state = 'parked'
  and ($1::uuid[] is null or e.event_id = any($1))
  and ($2::text is null or e.tenant_id = $2)
  and ($3::text is null or strpos(e.last_error, $3) > 0)
  and ($4::float8 is null or e.recorded_at <= clock_timestamp() - make_interval(secs => $4))
  and ($5::float8 is null or e.recorded_at >= clock_timestamp() - make_interval(secs => $5))
order by e.position
limit $6::bigint
