select name, day from ticketflow.partitions_of('effect_receipts')
