//! Copies, lost acknowledgements, queues that go, pauses: each effect once all the same.

use std::time::Duration;

use uuid::Uuid;

use crate::consuming::{Stage, message, ticket_event};
use crate::scripted::{Do, Scripted, TABLE};

const RECEIPTS: &str = "select count(*) from ticketflow.effect_receipts";
const TASKS: &str = "select count(*) from ticketflow.business_tasks";
const DOUBLED: &str = "select count(*) from (
  select event_id from ticketflow.business_tasks group by 1 having count(*) > 1
  union all
  select event_id from ticketflow.audit_entries group by 1 having count(*) > 1) as doubled";

/// Versions 1 to 10 of so many tickets, which are in place.
async fn tickets(stage: &Stage, number: usize) -> Vec<event::Event> {
    let mut events = Vec::new();
    for _ in 0..number {
        let ticket = Uuid::now_v7();
        stage.ticket("acme", ticket).await;
        events.extend((1..=10).map(|version| ticket_event("acme", ticket, version)));
    }
    events
}

async fn trail_is_in_order(stage: &Stage) {
    let out_of_order = "select count(*) from (
      select version, late or gap as noted,
        lag(version, 1, 0::bigint) over (partition by aggregate_id order by entry_id) as before
      from ticketflow.audit_entries) as step
      where version <> before + 1 or noted";
    assert_eq!(stage.count(out_of_order).await, 0);
    let behind = "select count(*) from ticketflow.search_documents where version <> 10";
    assert_eq!(
        stage.count(behind).await,
        0,
        "the newest version is what is found"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_events_one_to_fifty_times_to_eight_consumers() {
    let stage = Stage::new("fifty_times").await;
    let events = tickets(&stage, 20).await;
    let mut messages = Vec::new();
    for event in &events {
        messages.extend(std::iter::repeat_n(message(event), fastrand::usize(1..=50)));
    }
    fastrand::shuffle(&mut messages);
    let mut consumers = Vec::new();
    for _ in 0..8 {
        consumers.push(stage.consumer(&["--database-pool-size", "4"]).await);
    }
    stage.send(broker::Route::Events, &messages).await;
    stage.until(RECEIPTS, 600).await;
    stage.until_empty().await;
    stage
        .until("select count(*) from ticketflow.deferred_deliveries", 0)
        .await;
    for consumer in consumers {
        consumer.stop().await;
    }
    assert_eq!(stage.count(RECEIPTS).await, 600);
    assert_eq!(stage.count(TASKS).await, 200);
    assert_eq!(stage.count(DOUBLED).await, 0);
    trail_is_in_order(&stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledgements_that_get_lost_double_nothing() {
    let stage = Stage::new("lost_acks").await;
    let events = tickets(&stage, 50).await;
    let consumers = [stage.consumer(&[]).await, stage.consumer(&[]).await];
    stage.publish(&events[..250]).await;
    for _ in 0..10 {
        stage.site.close_connections().await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    stage
        .broker
        .connected(crate::consuming::PATIENCE)
        .await
        .unwrap();
    stage.publish(&events[250..]).await;
    stage.until(RECEIPTS, 1500).await;
    stage.until_empty().await;
    stage
        .until("select count(*) from ticketflow.deferred_deliveries", 0)
        .await;
    for consumer in consumers {
        consumer.until_ready(true).await;
        consumer.stop().await;
    }
    assert_eq!(stage.count(DOUBLED).await, 0);
    trail_is_in_order(&stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_deleted_is_subscribed_to_again() {
    let stage = Stage::new("queue_deleted").await;
    let consumer = stage.consumer(&[]).await;
    consumer.until_ready(true).await;
    for _ in 0..3 {
        let generation = "select ready_generation from ticketflow.effect_queues \
                          where pool = 'shared' and effect = 'search'";
        let before = stage.count(generation).await;
        // Whoever looks after the queues makes it again, too fast for a look to see it gone. Asked for
        // more than once: RabbitMQ 3.10 may say that it deleted a quorum queue made a moment ago, and
        // still have it.
        let deadline = tokio::time::Instant::now() + crate::consuming::PATIENCE;
        let mut next = tokio::time::Instant::now();
        while stage.count(generation).await == before {
            assert!(tokio::time::Instant::now() < deadline, "not made again");
            if tokio::time::Instant::now() >= next {
                // An error says that it is gone already.
                let _ = stage.site.delete_queue("ticketflow.shared.search").await;
                next = tokio::time::Instant::now() + Duration::from_secs(15);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        consumer.until_ready(true).await;
    }
    let events: Vec<_> = (0..10)
        .map(|_| ticket_event("acme", Uuid::now_v7(), 1))
        .collect();
    stage.publish(&events).await;
    stage
        .until("select count(*) from ticketflow.search_documents", 10)
        .await;
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_effect_leaves_its_queue_alone_and_its_rows_too() {
    let stage = Stage::new("paused").await;
    let consumer = stage.consumer(&["--backoff-first", "10ms"]).await;
    let missing = Uuid::now_v7();
    stage.publish([&ticket_event("acme", missing, 1)]).await;
    stage
        .until("select count(*) from ticketflow.audit_entries", 1)
        .await;
    stage
        .until("select count(*) from ticketflow.deferred_deliveries", 1)
        .await;
    stage
        .run("update ticketflow.effect_queues set paused = true where effect = 'notification'")
        .await;
    let deadline = tokio::time::Instant::now() + crate::consuming::PATIENCE;
    loop {
        let queue = stage.broker.look_at("ticketflow.shared.notification").await;
        match queue.unwrap() {
            broker::Look::Present { consumers: 0, .. } => break,
            look @ (broker::Look::Present { .. } | broker::Look::Missing) => {
                assert!(tokio::time::Instant::now() < deadline, "{look:?}");
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stage.ticket("acme", missing).await;
    let ticket = Uuid::now_v7();
    stage.ticket("acme", ticket).await;
    stage.publish([&ticket_event("acme", ticket, 1)]).await;
    stage
        .until("select count(*) from ticketflow.audit_entries", 2)
        .await;
    consumer.until_ready(true).await;
    assert_eq!(stage.count(TASKS).await, 0);
    stage
        .run("update ticketflow.effect_queues set paused = false")
        .await;
    stage.until(TASKS, 2).await;
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_come_and_go_and_the_trail_stays_in_order() {
    let stage = Stage::new("come_and_go").await;
    let events = tickets(&stage, 60).await;
    let mut messages: Vec<_> = events.iter().map(message).collect();
    // Interleaved, each ticket's own in order, as a relay brings them.
    messages.sort_by_key(|one| one.body.clone().len() + fastrand::usize(..3));
    let steady = stage.consumer(&[]).await;
    let sending = stage.send(broker::Route::Events, &messages);
    let changing = async {
        for round in 0..8 {
            let other = stage.consumer(&["--prefetch-first", "100"]).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            match round % 2 {
                0 => other.kill().await,
                _ => other.stop().await,
            }
        }
    };
    tokio::join!(sending, changing);
    stage.until(RECEIPTS, 1800).await;
    stage.until_empty().await;
    stage
        .until("select count(*) from ticketflow.deferred_deliveries", 0)
        .await;
    steady.stop().await;
    assert_eq!(stage.count(DOUBLED).await, 0);
    trail_is_in_order(&stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_unclean_stop_the_next_start_takes_one_at_a_time() {
    let stage = Stage::new("unclean").await;
    stage.run(TABLE).await;
    let effect = Scripted::new("search");
    let events: Vec<_> = (0..20)
        .map(|_| ticket_event("acme", Uuid::now_v7(), 1))
        .collect();
    for event in &events {
        effect.with_event(event, Do::Hang);
    }
    stage.send_to("search", events.iter().map(message)).await;
    let settings = ["--name", "one", "--channels", "1", "--batch-size", "1"];
    let first = stage.consumer_of(effect.clone(), &settings).await;
    stage.until_unacked("search", 20).await;
    first.kill().await;
    let marks = "select count(*) from ticketflow.consumer_marks";
    assert_eq!(stage.count(marks).await, 1, "the mark stays");
    stage.until_unacked("search", 0).await;
    let tried = |effect: &Scripted| -> u32 { events.iter().map(|event| effect.tried(event)).sum() };
    let before = tried(&effect);
    let careful = stage.consumer_of(effect.clone(), &settings).await;
    while tried(&effect) == before {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stage.until_unacked("search", 1).await;
    careful.kill().await;
    // What is applied raises it again; a clean stop leaves nothing behind.
    for event in &events {
        effect.with_event(event, Do::Write);
    }
    let consumer = stage.consumer_of(effect, &settings).await;
    stage.until("select count(*) from effects", 20).await;
    stage.until_empty().await;
    let own = stage.count(marks).await;
    consumer.stop().await;
    assert_eq!(stage.count(marks).await, own - 1);
}
