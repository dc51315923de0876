select 'warning' as severity,
  'receipts below the floor are not all removed' as finding,
  'run `ticketflow retention` again' as remedy
from ticketflow.receipt_floor
where truncated < floor and changed_at < clock_timestamp() - interval '1 hour'
