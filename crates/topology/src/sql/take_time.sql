-- For this transaction only: a look through millions of events takes longer than other statements.
select set_config('statement_timeout', '600000', true)
