select 'problem' as severity, 'the server is read-only: a standby?' as finding,
  'name the primary in DATABASE_URL, with target_session_attrs=read-write' as remedy
where pg_is_in_recovery()
union all
select 'warning', format('%s is off: a crash of the server may forget what it has committed', name),
  'switch it on'
from pg_settings
where name in ('fsync', 'synchronous_commit', 'full_page_writes') and setting = 'off'
union all
select 'warning',
  format('a snapshot is %s transactions old (process %s, %s)', age(backend_xmin), pid,
    coalesce(nullif(application_name, ''), 'unnamed')),
  'end it: dead rows behind it are not removed'
from pg_stat_activity
where age(backend_xmin) > 1000000
union all
select 'warning', format('a prepared transaction is open since %s', prepared),
  'commit it or roll it back: dead rows behind it are not removed'
from pg_prepared_xacts
where prepared < clock_timestamp() - interval '10 minutes'
