-- One login for each process, a member of that process's role and of nothing else. Run it after
-- `ticketflow migrate`, which makes the roles, as a login that may make roles:
--
--     psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -v producer_password=… -v relay_password=… \
--         -v consumer_password=… -v operator_password=… -f deploy/logins.sql
--
-- It may be run again: passwords are set anew. Each process takes its role when it connects, so what
-- its login may do of its own (inherit) is nothing that it needs.
select format('create role %I login', login)
from unnest(array['producer', 'relay', 'consumer', 'operator']) as process
cross join lateral (select 'ticketflow_login_' || process as login) as named
where not exists (select from pg_roles where rolname = login)
\gexec
select format('grant ticketflow_%s to ticketflow_login_%s', process, process)
from unnest(array['producer', 'relay', 'consumer', 'operator']) as process
\gexec
alter role ticketflow_login_producer password :'producer_password';
alter role ticketflow_login_relay password :'relay_password';
alter role ticketflow_login_consumer password :'consumer_password';
alter role ticketflow_login_operator password :'operator_password';
