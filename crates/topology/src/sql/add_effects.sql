-- A pool without any effects gets those of another: its events would go to nobody.
insert into ticketflow.effect_queues (pool, effect, event_types)
select $1::text, effect, event_types
from ticketflow.effect_queues
where pool = $2::text
  and not exists (select from ticketflow.effect_queues where pool = $1::text)
on conflict do nothing
