insert into ticketflow.effect_queues (pool, effect, event_types)
values ($1::text, $2::text, $3::text[])
on conflict do nothing
