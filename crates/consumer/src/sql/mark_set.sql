-- Marks that nobody keeps any more have done their work once this start has seen them.
with others as materialized (
  select instance, seen_at from ticketflow.consumer_marks where consumer = $2 and instance <> $1
), swept as (
  delete from ticketflow.consumer_marks
  where instance in (
    select instance from others where seen_at < clock_timestamp() - interval '1 minute')
), own as (
  insert into ticketflow.consumer_marks (instance, consumer) values ($1, $2)
  on conflict do nothing
)
select count(*) > 0 as unclean from others
