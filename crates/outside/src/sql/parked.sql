-- Parked tasks: of tenant $1, with $2 in the reason or in what was said, of the ids $3, written
-- down at least $4 milliseconds ago (null does not narrow), at most $5.
select b.tenant_id::text, b.task_id, b.ticket_id, b.event_id, b.task_type::text, b.status::text,
  b.parked_reason::text, b.attempts, b.last_error, b.created_at
from ticketflow.business_tasks as b
where b.status = 'parked'
  and ($1::text is null or b.tenant_id = $1::text)
  and ($2::text is null or strpos(concat_ws(': ', b.parked_reason, b.last_error), $2::text) > 0)
  and ($3::uuid[] is null or b.task_id = any($3::uuid[]))
  and ($4::bigint is null or b.created_at <= clock_timestamp() - $4::bigint * interval '1 millisecond')
order by b.created_at, b.task_id
limit $5::bigint
