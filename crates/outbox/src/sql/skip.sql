update ticketflow.outbox_events
set state = 'skipped', held = false
where event_id = $1 and tenant_id = $2 and source = $3 and state in ('pending', 'parked')
