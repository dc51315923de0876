with standing as materialized (
  select delivery_id from ticketflow.deferred_deliveries
  where delivery_id = any($1)
  order by delivery_id
  for update
)
delete from ticketflow.deferred_deliveries as done
using standing
where done.delivery_id = standing.delivery_id
