-- Whether the effect keeps its receipts here at all. If not, every event would look missing.
select exists (
  select from ticketflow.effect_receipts where effect_name = $1::text) as has_receipts
