-- When the effect of each event was committed.
select event_id, pg_xact_commit_timestamp(xmin)
from ticketflow.effect_receipts
where effect_name = $1 and event_id = any($2)
