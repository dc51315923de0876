-- A pool that has no effects yet gets those of the shared one: without them its events would be
-- published to nobody.
insert into ticketflow.effect_queues (pool, effect, event_types)
select $1::text, effect, event_types
from ticketflow.effect_queues
where pool = 'shared'
  and not exists (select from ticketflow.effect_queues where pool = $1::text)
on conflict do nothing
