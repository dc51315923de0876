-- For this transaction: plans without the values in them (planning over all partitions costs more
-- than any of these statements) that use the indexes even if the tables were empty when they were
-- last analyzed, and no wait for the disk (what a crash forgets here becomes a duplicate, never a
-- loss).
select set_config('plan_cache_mode', 'force_generic_plan', true),
  set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
  set_config('jit', 'off', true), set_config('synchronous_commit', 'off', true),
  -- Recording takes ids from up to a day ahead.
  ticketflow.uuid_v7_floor(clock_timestamp() + interval '25 hours') as ahead
