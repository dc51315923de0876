-- The sessions of a process in this database.
select pid from pg_stat_activity
where datname = current_database() and starts_with(application_name, $1)
