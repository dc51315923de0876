-- Whether an earlier event was published and its effect is still to come. Read only when a wait is
-- over, since no index serves it; ids bound it to the partitions that can have one.
select exists (
  select from ticketflow.outbox_events as sent
  where sent.event_id >= (select truncated from ticketflow.receipt_floor)
    and sent.event_id < ticketflow.uuid_v7_floor(ticketflow.uuid_v7_time($7) + interval '1 day')
    and sent.tenant_id = $2::text and sent.aggregate_type = $3::text
    and sent.aggregate_id = $4::text and sent.version > $5 and sent.version < $6
    and sent.state = 'published'
    and not exists (
      select from ticketflow.effect_receipts as done
      where done.event_id = sent.event_id and done.tenant_id = sent.tenant_id
        and done.source = sent.source and done.effect_name = $1::text)) as coming
