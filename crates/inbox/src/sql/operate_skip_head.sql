-- The head, if the effect keeps one. (Others have none.)
select h.version
from ticketflow.deferred_deliveries as d
join ticketflow.effect_heads as h on h.effect_name = d.effect_name and h.tenant_id = d.tenant_id
  and h.aggregate_type = d.aggregate_type and h.aggregate_id = d.aggregate_id
where d.delivery_id = $1 and d.applicable
for update of h
