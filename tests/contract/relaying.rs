//! The relay's part of the contract, one test for each promise.

use std::time::Duration;

use broker::{Doubt, PublishOutcome, Refusal, ScriptedBroker};

use sandbox::{Direction, FaultProxy, Then};

use crate::consuming::Stage;
use crate::memory::{Call, MemoryStore, cycle, event};
use crate::relaying::{Rig, Running, config, wire};
use crate::scripted::{Scripted, TABLE};

#[tokio::test]
async fn k03_confirmed_marks_published_only() {
    let store = MemoryStore::with([event("a", 1), event("b", 2), event("a", 3)]);
    let broker = ScriptedBroker::confirming();
    let mut cycle = cycle(&store, broker.clone());
    let report = cycle.run(store.batch()).await.expect("settled");
    let calls = store.calls();
    assert_eq!(
        calls,
        [1, 2, 3].map(|position| Call::MarkPublished { position })
    );
    assert_eq!(report.settled.published, 3);
    assert_eq!(
        (
            report.settled.released,
            report.settled.retried,
            report.settled.parked
        ),
        (0, 0, 0)
    );
    assert!(report.outage.is_none() && cycle.circuits.is_closed());
    let waves: Vec<usize> = broker
        .waves()
        .iter()
        .map(|(_, messages)| messages.len())
        .collect();
    assert_eq!(
        waves,
        [2, 1],
        "the second event of a goes out after the first is confirmed"
    );
}

#[tokio::test]
async fn k04_refused_releases_only() {
    let unroutable = PublishOutcome::Unroutable {
        code: 312,
        text: "NO_ROUTE".to_owned(),
    };
    let nack = PublishOutcome::Refused(Refusal::Nack);
    let cut = PublishOutcome::Unknown(Doubt::LinkLost {
        cause: "cut".to_owned(),
    });
    let silent = PublishOutcome::Unknown(Doubt::TimedOut);
    // Outcome, whether all queues are there, whether it counts as the event's refusal, whether the
    // pool's circuit opens.
    let table = [
        (nack, true, false, true),
        (unroutable.clone(), true, true, false),
        (unroutable, false, false, true),
        (cut, true, false, false),
        (silent, true, false, true),
    ];
    for (outcome, is_verified, counts, opens) in table {
        let store = MemoryStore::with([event("a", 1), event("a", 2)]);
        let answer = outcome.clone();
        let broker = ScriptedBroker::new(move |_| answer.clone());
        let mut cycle = cycle(&store, broker.clone());
        cycle.verify.0 = is_verified;
        let report = cycle.run(store.batch()).await.expect("settled");
        let first = Call::Release {
            position: 1,
            counts,
        };
        // The second was never sent: its predecessor is not confirmed.
        let second = Call::Release {
            position: 2,
            counts: false,
        };
        assert_eq!(store.calls(), [first, second], "{outcome}");
        assert_eq!(
            (report.settled.published, report.settled.parked),
            (0, 0),
            "{outcome}"
        );
        assert_eq!(cycle.circuits.is_closed(), !opens, "{outcome}");
        let sent: usize = broker
            .waves()
            .iter()
            .map(|(_, messages)| messages.len())
            .sum();
        assert_eq!(sent, 1, "{outcome}");
    }
}

#[tokio::test]
async fn k05_broker_down_at_commit() {
    let sandbox = sandbox::Sandbox::start(sandbox::SandboxOptions::default())
        .await
        .expect("servers");
    let sandbox = std::sync::Arc::new(sandbox);
    let rig = Rig::on(sandbox.site("away").await.expect("a site")).await;
    rig.queue("tap", &["ticket.#"]).await;
    let relay = rig.relay(&[]);
    rig.record(20, 1).await;
    rig.until_published(20).await;
    sandbox.rabbitmq().stop().await.expect("stopped");
    rig.record(20, 4).await;
    // Long enough for a relay that claims regardless to spend something.
    tokio::time::sleep(Duration::from_secs(3)).await;
    rig.until(
        "select count(*) from ticketflow.outbox_events where state = 'pending'",
        80,
    )
    .await;
    sandbox.rabbitmq().start().await.expect("started");
    rig.until_published(100).await;
    let spent = "select count(*) from ticketflow.outbox_events \
                 where attempts > 0 or publish_tries > 0 or first_refused_at is not null";
    assert_eq!(rig.count(spent).await, 0);
    relay.stop().await;
    rig.broker
        .connected(crate::relaying::PATIENCE)
        .await
        .expect("a link");
    let wire = rig.wire("ticketflow.shared.tap").await;
    crate::relaying::assert_first_arrivals_in_order(&wire);
    assert_eq!(wire.len(), 100, "nothing was sent twice either");
}

/// The method frame of `basic.ack`: class 60, method 80.
const ACK: [u8; 4] = [0, 60, 0, 80];

#[tokio::test(flavor = "multi_thread")]
async fn k06_lost_confirm_is_a_duplicate_not_a_loss() {
    let stage = Stage::new("k06").await;
    stage.run(TABLE).await;
    let consumer = stage.consumer_of(Scripted::new("search"), &[]).await;
    let port = stage.site.sandbox().rabbitmq().port();
    let proxy = FaultProxy::start(port).await.expect("a proxy");
    let amqp_url = stage.site.amqp_url_through(proxy.port());
    let relay = Running::start(config(&stage.site.database_url, &amqp_url, &[]));
    let record =
        "select ticketflow.record_event('acme', 'ticket', 'a', 'ticket.updated', ''::bytea)";
    let published = "select count(*) from ticketflow.outbox_events where state = 'published'";
    stage.run(record).await;
    stage.until(published, 1).await;
    // The broker has taken the second event and says so; the link is cut just before that arrives.
    let lost = proxy.trap(Direction::ToClient, &ACK, 1, Then::CutBefore);
    stage.run(record).await;
    assert!(lost.closed().await);
    stage.until(published, 2).await;
    stage.until("select count(*) from public.effects", 2).await;
    relay.stop().await;
    // Nobody consumes this queue: it shows what was on the wire.
    let audit = wire(&stage.broker, "ticketflow.shared.audit").await;
    let versions: Vec<_> = audit.iter().map(|event| event.version).collect();
    assert_eq!(versions, [Some(1), Some(2), Some(2)]);
    stage
        .until("select count(*) from ticketflow.effect_receipts", 2)
        .await;
    consumer.stop().await;
    let spent = "select count(*) from ticketflow.outbox_events where attempts > 0";
    assert_eq!(stage.count(spent).await, 0);
}
