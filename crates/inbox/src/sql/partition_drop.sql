select ticketflow.drop_partition('effect_receipts', $1) as dropped
