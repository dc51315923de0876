-- Receipts ever written, by the statistics that each session reports about once a second.
select coalesce(sum(n_tup_ins), 0)::bigint from pg_stat_user_tables
where schemaname = 'ticketflow' and starts_with(relname, 'effect_receipts')
