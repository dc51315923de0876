-- The lanes that a relay holds.
select tenant_id::text, lane::smallint from ticketflow.outbox_lanes
where leased_by like $1::text and leased_until > clock_timestamp()
