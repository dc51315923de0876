select
  (select count(*) from ticketflow.outbox_events),
  (select count(*) from ticketflow.outbox_events where state = 'published'),
  count(*) filter (where effect_name = 'notification'),
  count(*) filter (where effect_name = 'search'),
  count(*) filter (where effect_name = 'audit')
from ticketflow.effect_receipts
