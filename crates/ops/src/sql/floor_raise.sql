update ticketflow.receipt_floor as f
set floor = greatest(f.floor, wanted.floor),
  changed_at = case when wanted.floor > f.floor then clock_timestamp() else f.changed_at end
from (
  select ticketflow.uuid_v7_floor(
    date_trunc('day', clock_timestamp() - make_interval(secs => $1::float8), 'UTC')) as floor
) as wanted
returning f.floor
