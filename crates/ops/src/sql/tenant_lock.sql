-- Two keys added at once are counted one after the other.
select from ticketflow.tenants where tenant_id = $1::text for no key update
