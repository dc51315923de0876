select ticketflow.truncate_partition('effect_receipts', $1) as emptied
