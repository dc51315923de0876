insert into ticketflow.event_conflicts (
  tenant_id, source, event_id, effect_name, digest, first_digest, first_effect, routing_key)
values ($1::text, $2::text, $3, $4::text, $5, $6, $7::text, $8)
on conflict do nothing
