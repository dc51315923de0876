//! Events that cannot be published, or that kill who publishes them, cost only themselves.

mod consuming;

use broker::ScriptedBroker;

use crate::memory::{Call, MemoryStore, cycle, event};
use crate::relaying::Rig;

#[tokio::test]
async fn after_two_unsettled_claims_each_try_is_written_first_and_settled_alone() {
    let store = MemoryStore::suspect([event("a", 1), event("b", 2)], 0);
    let broker = ScriptedBroker::confirming();
    let report = cycle(&store, broker.clone())
        .run(store.batch())
        .await
        .expect("settled");
    let expected = [1, 2].map(|position| {
        [
            Call::WriteTry { position },
            Call::MarkPublished { position },
        ]
    });
    assert_eq!(store.calls(), expected.concat());
    assert_eq!(report.settled.published, 1, "the report is the last one's");
    assert_eq!(broker.waves().len(), 2);
}

#[tokio::test]
async fn an_event_whose_tries_stayed_unsettled_three_times_is_parked_and_not_sent() {
    let store = MemoryStore::suspect([event("a", 1), event("a", 2)], 3);
    let broker = ScriptedBroker::confirming();
    cycle(&store, broker.clone())
        .run(store.batch())
        .await
        .expect("settled");
    assert_eq!(
        store.calls(),
        [
            Call::WriteTry { position: 1 },
            Call::Park { position: 1 },
            // Behind a parked head, so neither tried nor sent.
            Call::Release {
                position: 2,
                counts: false,
            },
        ]
    );
    assert!(broker.waves().is_empty());
}

/// Each makes a recorded row something that cannot be a message.
const SPOILED: [&str; 13] = [
    "event_type = 'ticket updated'",
    "event_type = ''",
    "aggregate_type = 'Ticket'",
    "content_type = ''",
    "content_type = repeat('x', 300)",
    "headers = '{\"n\": 1}'",
    "headers = '[]'",
    "headers = jsonb_build_object('big', repeat('x', 130000))",
    "trace_context = jsonb_build_object('traceparent', repeat('x', 5000))",
    "payload = convert_to(repeat('x', 3000000), 'UTF8')",
    "occurred_at = 'infinity'",
    "occurred_at = '4713-01-01 BC'",
    "payload = convert_to(repeat('x', 3000000), 'UTF8'), attempts = 9223372036854775807",
];

/// None of these keeps a row from being a message.
const ODD: [&str; 4] = [
    "recorded_at = '-infinity'",
    "recorded_at = 'infinity'",
    "first_refused_at = 'infinity'",
    "publish_tries = 32767, attempts = 9223372036854775807",
];

/// Rows as a program with too many rights might leave them: past every check, all in one lane.
async fn record_spoiled(rig: &Rig) {
    rig.database
        .batch_execute(
            "do $$ declare name text; begin \
               for name in select conname from pg_constraint \
                 where conrelid = 'ticketflow.outbox_events'::regclass and contype = 'c' \
               loop execute format('alter table ticketflow.outbox_events drop constraint %I', name); end loop; \
             end $$; \
             alter domain ticketflow.dotted_name drop constraint dotted_name_form; \
             alter domain ticketflow.short_text drop constraint short_text_form; \
             alter table ticketflow.outbox_events disable trigger outbox_events_immutable",
        )
        .await
        .expect("checks dropped");
    for kind in SPOILED.into_iter().chain(ODD) {
        let record = "select ticketflow.record_event('default', 'ticket', 'same', 'ticket.updated', ''::bytea)";
        let row = rig.database.query_one(record, &[]).await.expect("recorded");
        let id: uuid::Uuid = row.get(0);
        let spoil = format!(
            "update ticketflow.outbox_events set {kind}, aggregate_id = 'bad' || position where event_id = $1"
        );
        rig.execute(&spoil, &[&id]).await;
    }
}

#[tokio::test]
async fn bad_rows_at_the_head_of_a_lane_are_parked_and_the_good_ones_published() {
    let rig = Rig::start("bad").await;
    rig.queue("tap", &["ticket.#"]).await;
    record_spoiled(&rig).await;
    rig.execute(
        "insert into ticketflow.outbox_events \
           (event_id, position, tenant_id, source, aggregate_type, aggregate_id, version, previous_version, \
            lane, event_type, content_type, payload) \
         select ticketflow.uuid_v7(), nextval('ticketflow.outbox_position'), 'default', 's', 'ticket', 'good' || n, \
           1, 0, ticketflow.lane_of('default', 'ticket', 'same'), 'ticket.updated', 'text/plain', '' \
         from generate_series(1, 100) as n",
        &[],
    )
    .await;
    let relay = rig.relay(&[]);
    let odd = i64::try_from(ODD.len()).expect("few");
    rig.until_published(100 + odd).await;
    let parked = "from ticketflow.outbox_events where state = 'parked' and held and attempts >= 1";
    let bad = i64::try_from(SPOILED.len()).expect("few");
    assert_eq!(rig.count(&format!("select count(*) {parked}")).await, bad);
    let reasons = rig
        .count(&format!("select count(distinct last_error) {parked}"))
        .await;
    assert!(reasons >= 9, "each kind has its reason: {reasons}");
    // Each heads a hold of its aggregate, which a person looks at.
    assert_eq!(
        rig.count("select count(*) from ticketflow.outbox_holds where until is null")
            .await,
        bad
    );
    relay.stop().await;
}
