-- Whole partitions below the floor are empty by now; what is left is in the default one.
delete from ticketflow.effect_receipts where event_id < $1::uuid
