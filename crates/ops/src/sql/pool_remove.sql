delete from ticketflow.effect_queues
where pool = $1::text and not exists (select from ticketflow.tenants where pool = $1::text)
