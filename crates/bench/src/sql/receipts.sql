-- Receipts, and the seconds from the commit of the first to that of the last.
select count(*), coalesce(extract(epoch from
  max(pg_xact_commit_timestamp(xmin)) - min(pg_xact_commit_timestamp(xmin))), 0)::float8
from ticketflow.effect_receipts
