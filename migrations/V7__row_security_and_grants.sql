-- Row security, forced, on every table with a tenant; and who may do what. The producer sees and
-- writes the rows of the tenant it has set for its transaction, none without one. The other
-- processes serve all tenants and say so by policies of their own; nobody bypasses row security.
set local role ticketflow_owner;

do $$
declare
  name text;
begin
  foreach name in array array[
    'tenants', 'tenant_keys', 'outbox_events', 'outbox_aggregates', 'outbox_holds', 'outbox_lanes',
    'effect_receipts', 'effect_heads', 'deferred_deliveries', 'event_conflicts', 'operator_actions',
    'tickets', 'idempotency_keys', 'business_tasks', 'search_documents', 'audit_entries'
  ] loop
    execute format('alter table ticketflow.%I enable row level security', name);
    execute format('alter table ticketflow.%I force row level security', name);
    execute format(
      'create policy every_tenant on ticketflow.%I to ticketflow_owner, ticketflow_definer, '
      'ticketflow_relay, ticketflow_consumer, ticketflow_operator using (true) with check (true)',
      name);
  end loop;
  foreach name in array array['tickets', 'idempotency_keys'] loop
    execute format(
      'create policy own_tenant on ticketflow.%I to ticketflow_producer '
      'using (tenant_id = (select nullif(current_setting(''ticketflow.tenant'', true), ''''))) '
      'with check (tenant_id = (select nullif(current_setting(''ticketflow.tenant'', true), '''')))',
      name);
  end loop;
end
$$;

-- The definer's functions.
grant select on ticketflow.tenants, ticketflow.tenant_keys, ticketflow.search_documents
  to ticketflow_definer;
grant select, insert on ticketflow.outbox_events to ticketflow_definer;
grant select, insert, update (version) on ticketflow.outbox_aggregates to ticketflow_definer;
grant usage on sequence ticketflow.outbox_position to ticketflow_definer;

-- The producer.
grant select, insert,
  update (version, subject, body, status, priority, assignee, updated_at)
  on ticketflow.tickets to ticketflow_producer;
grant select, insert, delete on ticketflow.idempotency_keys to ticketflow_producer;

-- The relay.
grant select on ticketflow.tenants, ticketflow.effect_receipts, ticketflow.deferred_deliveries,
  ticketflow.receipt_floor, ticketflow.outbox_aggregates to ticketflow_relay;
grant select,
  update (pool, state, held, attempts, publish_tries, available_at, first_refused_at, published_at,
    last_error)
  on ticketflow.outbox_events to ticketflow_relay;
grant select, insert, update, delete on ticketflow.outbox_holds to ticketflow_relay;
grant select, update (lease_token, leased_by, leased_until, unsettled_claims)
  on ticketflow.outbox_lanes to ticketflow_relay;
grant select, insert, update on ticketflow.effect_queues to ticketflow_relay;

-- The consumer.
grant select on ticketflow.tenants, ticketflow.outbox_events, ticketflow.tickets
  to ticketflow_consumer;
grant select, insert, delete, update (skipped) on ticketflow.effect_receipts to ticketflow_consumer;
grant select, update (floor, truncated, changed_at) on ticketflow.receipt_floor
  to ticketflow_consumer;
grant select, insert, update on ticketflow.effect_heads, ticketflow.business_tasks,
  ticketflow.search_documents, ticketflow.effect_queues to ticketflow_consumer;
grant select, insert, update, delete on ticketflow.deferred_deliveries to ticketflow_consumer;
grant select, insert on ticketflow.event_conflicts, ticketflow.audit_entries
  to ticketflow_consumer;
grant select, insert, update, delete on ticketflow.consumer_marks to ticketflow_consumer;
grant select on ticketflow.consumer_marks to ticketflow_operator;

-- The operator reads everything, of keys only their hashes, and changes what its commands change.
grant select on ticketflow.outbox_events, ticketflow.outbox_aggregates, ticketflow.effect_receipts,
  ticketflow.event_conflicts, ticketflow.tickets, ticketflow.idempotency_keys,
  ticketflow.search_documents, ticketflow.audit_entries to ticketflow_operator;
grant select, insert, update on ticketflow.tenants, ticketflow.outbox_lanes,
  ticketflow.effect_queues, ticketflow.effect_heads to ticketflow_operator;
grant delete on ticketflow.effect_queues to ticketflow_operator;
grant select, insert, update (label, expires_at, revoked_at) on ticketflow.tenant_keys
  to ticketflow_operator;
grant update (pool, state, held, attempts, publish_tries, available_at, first_refused_at,
    published_at, last_error)
  on ticketflow.outbox_events to ticketflow_operator;
grant select, insert, update, delete on ticketflow.outbox_holds, ticketflow.deferred_deliveries
  to ticketflow_operator;
grant insert, delete, update (skipped) on ticketflow.effect_receipts to ticketflow_operator;
grant select, update (floor, truncated, changed_at) on ticketflow.receipt_floor
  to ticketflow_operator;
grant select, update on ticketflow.business_tasks to ticketflow_operator;
grant select, insert on ticketflow.operator_actions to ticketflow_operator;

grant execute on function ticketflow.make_partition(text, date),
  ticketflow.truncate_partition(text, date), ticketflow.drop_partition(text, date)
  to ticketflow_relay, ticketflow_consumer, ticketflow_operator;
grant execute on function ticketflow.partitions_of(text), ticketflow.partition_name(text, date)
  to public;

reset role;
set local role ticketflow_definer;

grant execute on function
  ticketflow.record_event(text, text, text, text, bytea, text, text, bigint, jsonb, jsonb,
    timestamptz, uuid),
  ticketflow.record_event(text, text, text, text, text, text, text, bigint, jsonb, jsonb,
    timestamptz, uuid),
  ticketflow.record_events(text[], text[], text[], text[], bytea[], text[], text[], bigint[],
    jsonb[], jsonb[], timestamptz[], uuid[])
to ticketflow_recorder, ticketflow_producer;
grant execute on function ticketflow.lock_aggregate(text, text, text) to ticketflow_producer;
grant execute on function ticketflow.tenant_of_key(bytea),
  ticketflow.search_tickets(text, text, uuid, integer) to ticketflow_producer;

reset role;
