delete from ticketflow.effect_receipts
where event_id < ticketflow.uuid_v7_floor($1::date::timestamp at time zone 'UTC')
