-- Updates of event rows so far, by the statistics that each session reports about once a second.
select coalesce(sum(n_tup_upd), 0)::bigint from pg_stat_user_tables
where schemaname = 'ticketflow' and starts_with(relname, 'outbox_events')
