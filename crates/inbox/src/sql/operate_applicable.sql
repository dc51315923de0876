-- Parked deliveries that may still be applied, the first received ones first. Without a lock.
select d.delivery_id
from ticketflow.deferred_deliveries as d
where d.state = 'parked' and d.applicable
  and ($1::bigint[] is null or d.delivery_id = any($1))
  and ($2::text is null or d.tenant_id = $2)
  and ($3::text is null or d.effect_name = $3)
  and ($4::text is null or strpos(d.reason || ': ' || d.detail, $4) > 0)
  and ($5::float8 is null or d.received_at <= clock_timestamp() - make_interval(secs => $5))
  and ($6::float8 is null or d.received_at >= clock_timestamp() - make_interval(secs => $6))
order by d.delivery_id
limit $7::bigint
