//! An outage is not a rejection: nothing is spent, nothing is parked, publishing resumes by itself.

mod consuming;
mod publishing;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{Sandbox, SandboxOptions};
use uuid::Uuid;

use crate::relaying::{PATIENCE, PUBLISHED, Rig, assert_first_arrivals_in_order};

/// Nothing of any event was counted against it.
async fn assert_nothing_spent(rig: &Rig) {
    let spent = "select count(*) from ticketflow.outbox_events \
                 where attempts > 0 or first_refused_at is not null or state = 'parked'";
    assert_eq!(rig.count(spent).await, 0);
    assert_eq!(
        rig.count("select count(*) from ticketflow.outbox_holds")
            .await,
        0
    );
}

async fn ids(rig: &Rig, queue: &str) -> (usize, BTreeSet<Uuid>) {
    let wire = rig.wire(queue).await;
    // A queue made anew may see events out of order; one that stayed may not.
    if queue.ends_with(".healthy") {
        assert_first_arrivals_in_order(&wire);
    }
    (
        wire.len(),
        wire.iter().map(|event| event.identity.event_id).collect(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_queues_full_then_deleted_then_back_costs_nothing() {
    let rig = Rig::start("full").await;
    rig.queue("healthy", &["ticket.#"]).await;
    rig.queue("full", &["ticket.#"]).await;
    let sandbox = rig.site.sandbox().clone();
    let vhost = rig.site.name.clone();
    let full = "^ticketflow\\.shared\\.full$";
    let policy = r#"{"max-length": 5}"#;
    let set = [
        "set_policy",
        "-p",
        &vhost,
        "--apply-to",
        "queues",
        "full",
        full,
        policy,
    ];
    sandbox.rabbitmqctl(&set).await.expect("a policy");
    let relay = rig.relay(&[]);
    rig.record(60, 2).await;
    // It answers every event with a nack, and one after the other asks again.
    let refused = "select count(*) from ticketflow.outbox_events where last_error like '%nack%'";
    rig.until_at_least(refused, 1).await;
    rig.until(&format!("{PUBLISHED} and last_error is not null"), 0)
        .await;
    assert_nothing_spent(&rig).await;
    rig.site
        .delete_queue("ticketflow.shared.full")
        .await
        .expect("deleted");
    // The relay makes it anew, under a new generation; it is as full as before.
    rig.until_at_least(
        "select ready_generation from ticketflow.effect_queues where effect = 'full'",
        2,
    )
    .await;
    rig.record(60, 1).await;
    assert_nothing_spent(&rig).await;
    sandbox
        .rabbitmqctl(&["clear_policy", "-p", &vhost, "full"])
        .await
        .expect("cleared");
    rig.until_published(180).await;
    relay.stop().await;
    assert_nothing_spent(&rig).await;
    let (healthy_copies, healthy) = ids(&rig, "ticketflow.shared.healthy").await;
    let (_, full) = ids(&rig, "ticketflow.shared.full").await;
    assert_eq!((healthy.len(), full.len()), (180, 180));
    // Each event once, once more each for the batches that were under way, and the probes, whose
    // number grows with the time that all this takes. A flood would be one copy each claim.
    assert!(
        healthy_copies < 3 * 180,
        "{healthy_copies} copies in the healthy queue"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn alarms_restarts_and_silence_cost_nothing_and_end_by_themselves() {
    let sandbox = Sandbox::start(SandboxOptions::default())
        .await
        .expect("servers");
    let sandbox = Arc::new(sandbox);
    let mut rig = Rig::on(sandbox.site("outages").await.expect("a site")).await;
    rig.queue("tap", &["ticket.#"]).await;
    let relay = rig.relay(&["--confirm-timeout", "5s"]);
    rig.record(20, 1).await;
    rig.until_published(20).await;

    // Short of memory, the broker blocks whoever publishes: what is recorded waits.
    sandbox.memory_alarm(true).await.expect("an alarm");
    rig.record(20, 2).await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(2);
    while tokio::time::Instant::now() < deadline {
        assert!(rig.count(PUBLISHED).await <= 20);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    sandbox.memory_alarm(false).await.expect("no alarm");
    rig.until_published(60).await;

    // PostgreSQL dies under load and comes back.
    rig.record(50, 4).await;
    sandbox.postgres().kill9().await.expect("killed");
    sandbox.postgres().start().await.expect("started");
    rig.database = rig.site.database().await.expect("a session");
    rig.until_published(260).await;

    // Frozen, the broker answers nothing, and the connection stays open.
    sandbox.rabbitmq().pause().expect("paused");
    rig.record(20, 2).await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    sandbox.rabbitmq().resume().expect("resumed");
    rig.until_published(300).await;

    sandbox.rabbitmq().restart().await.expect("restarted");
    rig.record(20, 2).await;
    rig.until_published(340).await;
    relay.stop().await;
    assert_nothing_spent(&rig).await;
    rig.broker.connected(PATIENCE).await.expect("a link");
    let (_, ids) = ids(&rig, "ticketflow.shared.tap").await;
    assert_eq!(ids.len(), 340);
}
