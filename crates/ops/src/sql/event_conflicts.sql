select c.tenant_id::text as tenant, c.source::text as source, c.effect_name::text as effect,
  c.digest, c.first_effect::text as first_effect, c.first_digest, c.detected_at
from ticketflow.event_conflicts as c
where c.event_id = $1::uuid
order by c.detected_at
