-- A queue that was just declared and has missed nothing.
insert into ticketflow.effect_queues (
  pool, effect, event_types, generation, declared_generation, ready_generation)
values ('shared', $1::text, $2, 1, 1, 1)
