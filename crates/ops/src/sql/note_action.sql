insert into ticketflow.operator_actions (actor, action, tenant_id, target, reason, result)
values ($1::text, $2::text, $3::text, $4::jsonb, $5::text, $6::jsonb)
