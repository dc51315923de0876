-- The next tenants that have tasks to send, from behind $1, at most $2 of them: one probe of the
-- index for each, however many tasks it has. The order asked for is that of the one index which
-- holds nothing but such tasks; with less, another could be taken that holds the delivered ones too.
with recursive walk (tenant_id, step) as (
  (
    select b.tenant_id::text, 1
    from ticketflow.business_tasks as b
    where b.status in ('pending', 'sending', 'unknown') and b.tenant_id > $1::text
    order by b.tenant_id, b.next_attempt_at
    limit 1
  )
  union all
  select next.tenant_id, walk.step + 1
  from walk
  cross join lateral (
    select b.tenant_id::text
    from ticketflow.business_tasks as b
    where b.status in ('pending', 'sending', 'unknown') and b.tenant_id > walk.tenant_id collate "C"
    order by b.tenant_id, b.next_attempt_at
    limit 1
  ) as next
  where walk.step < $2::bigint
)
select tenant_id from walk order by step
