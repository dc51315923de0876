//! What an outage, a full queue and a lost link cost the relay: nothing of the events.

use std::collections::BTreeSet;
use std::time::Duration;

use broker::{Doubt, PublishOutcome, ScriptedBroker};
use sandbox::FaultProxy;
use uuid::Uuid;

use super::{assert_nothing_spent, ids};
use crate::memory::{Call, MemoryStore, cycle, event};
use crate::relaying::{PUBLISHED, Rig, Running, config};

const TAP: &str = "ticketflow.shared.tap";
const PENDING: &str = "select count(*) from ticketflow.outbox_events where state = 'pending'";

/// A site whose relay reaches its broker through a proxy.
async fn behind_proxy(name: &str) -> (Rig, FaultProxy, String) {
    let rig = Rig::start(name).await;
    rig.queue("tap", &["ticket.#"]).await;
    let port = rig.site.sandbox().rabbitmq().port();
    let proxy = FaultProxy::start(port).await.expect("a proxy");
    let amqp_url = rig.site.amqp_url_through(proxy.port());
    (rig, proxy, amqp_url)
}

/// Ten minutes with every setting a sixtieth: an event that were refused all the while would have
/// waited its longest wait a dozen times, and been parked after a tenth of it.
#[tokio::test(flavor = "multi_thread")]
async fn b06_ten_scaled_minutes_without_a_broker_spend_nothing() {
    let (rig, proxy, amqp_url) = behind_proxy("b06").await;
    let scaled = [
        "--backoff-first",
        "16ms",
        "--backoff-most",
        "1s",
        "--park-after",
        "1s",
        "--poll-most",
        "1ms",
    ];
    let relay = Running::start(config(&rig.site.database_url, &amqp_url, &scaled));
    rig.record(20, 1).await;
    rig.until_published(20).await;
    // Given back: what has been claimed from here on shows.
    let claimed = "select count(*) from ticketflow.outbox_lanes \
                   where lease_token is not null or unsettled_claims > 0";
    rig.until(claimed, 0).await;
    proxy.cut();
    rig.record(500, 10).await;
    let over = tokio::time::Instant::now() + Duration::from_secs(10);
    while tokio::time::Instant::now() < over {
        // One batch may have been on its way to a channel when the link went.
        assert!(rig.count(claimed).await <= 4 * 256);
        assert_eq!(rig.count(PENDING).await, 5_000);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    rig.until(claimed, 0).await;
    assert_nothing_spent(&rig).await;
    proxy.restore();
    rig.until_published(5_020).await;
    relay.stop().await;
    assert_nothing_spent(&rig).await;
    let (copies, published) = ids(&rig, TAP).await;
    assert_eq!((copies, published.len()), (5_020, 5_020));
}

#[tokio::test(flavor = "multi_thread")]
async fn b10_a_full_queue_refuses_every_event_and_costs_none_anything() {
    let rig = Rig::start("b10_full").await;
    rig.queue("tap", &["ticket.#"]).await;
    let sandbox = rig.site.sandbox().clone();
    let full = [
        "set_policy",
        "-p",
        &rig.site.name,
        "--apply-to",
        "queues",
        "full",
        "^ticketflow\\.shared\\.tap$",
        r#"{"max-length": 1, "overflow": "reject-publish"}"#,
    ];
    sandbox.rabbitmqctl(&full).await.expect("a policy");
    // The limit of a quorum queue is soft: filled until it refuses.
    let filling = rig.relay(&[]);
    let nacked = "select count(*) from ticketflow.outbox_events \
                  where state = 'pending' and last_error like '%nack%'";
    while rig.count(nacked).await == 0 {
        rig.record(1, 1).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    filling.stop().await;
    let before = rig.count(PUBLISHED).await;
    rig.execute(
        "select ticketflow.record_event('default', 'ticket', 'row' || n, 'ticket.updated', ''::bytea) \
         from generate_series(1, 10) as n",
        &[],
    )
    .await;
    let waiting = rig.count(PENDING).await;
    assert!(waiting > 10);
    // A new process has no circuit open yet, so it asks with all of them at once.
    let relay = rig.relay(&[]);
    let refused = "select count(*) from ticketflow.outbox_events \
                   where aggregate_id like 'row%' and last_error like '%nack%'";
    rig.until(refused, 10).await;
    assert_eq!(rig.count(PUBLISHED).await, before);
    assert_eq!(rig.count(PENDING).await, waiting);
    assert_nothing_spent(&rig).await;
    sandbox
        .rabbitmqctl(&["clear_policy", "-p", &rig.site.name, "full"])
        .await
        .expect("cleared");
    rig.until_published(before + waiting).await;
    relay.stop().await;
    assert_nothing_spent(&rig).await;
    let (_, on_the_wire) = ids(&rig, TAP).await;
    assert_eq!(on_the_wire, ledger(&rig).await);
}

#[tokio::test]
async fn b10_a_channel_that_confirms_nothing_publishes_nothing() {
    let store = MemoryStore::with([event("a", 1), event("b", 2)]);
    let broker = ScriptedBroker::new(|_| PublishOutcome::Unknown(Doubt::NotConfirming));
    let report = cycle(&store, broker)
        .run(store.batch())
        .await
        .expect("settled");
    let released = [1, 2].map(|position| Call::Release {
        position,
        counts: false,
    });
    assert_eq!(store.calls(), released);
    assert_eq!(report.settled.published, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn b10_fifty_lost_connections_under_load_lose_nothing() {
    let (rig, proxy, amqp_url) = behind_proxy("b10_lost").await;
    let relay = Running::start(config(&rig.site.database_url, &amqp_url, &[]));
    for _ in 0..50 {
        // Cut while some of these are out and some are not: at the first that is published.
        let before = rig.count(PUBLISHED).await;
        rig.record(40, 2).await;
        rig.until_at_least(PUBLISHED, before + 1).await;
        proxy.cut_once();
    }
    rig.until_published(50 * 80).await;
    relay.stop().await;
    assert_nothing_spent(&rig).await;
    let (copies, on_the_wire) = ids(&rig, TAP).await;
    assert_eq!(on_the_wire, ledger(&rig).await);
    assert_eq!(on_the_wire.len(), 50 * 80);
    assert!(
        copies < 2 * 50 * 80,
        "{copies} copies: it sends again what was confirmed"
    );
}

/// What the database says was published.
async fn ledger(rig: &Rig) -> BTreeSet<Uuid> {
    let published = "select event_id from ticketflow.outbox_events where state = 'published'";
    let rows = rig.database.query(published, &[]).await.expect("a ledger");
    rows.iter().map(|row| row.get(0)).collect()
}
