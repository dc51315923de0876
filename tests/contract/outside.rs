//! `k17`: a receipt says that an event was processed, not that the outside was told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use event::Event;
use sandbox::{Receiver, Reply, Request};
use uuid::Uuid;

use crate::consuming::{Running, Stage, ticket_event};

const EVENTS: usize = 60;

/// A foreign system that is down until it is let up, and then does each of what such systems do.
async fn moody(up: &Arc<AtomicBool>) -> Receiver {
    let (up, seen) = (Arc::clone(up), AtomicUsize::new(0));
    Receiver::start(move |request: &Request| {
        if !up.load(Ordering::SeqCst) {
            return Some(Reply::answer(503));
        }
        if request.method != "POST" {
            return None;
        }
        match seen.fetch_add(1, Ordering::SeqCst) % 6 {
            0 => Some(Reply::take_and_close()),
            1 => Some(Reply::close()),
            2 => Some(Reply::answer(500)),
            3 => Some(Reply::take_late(Duration::from_secs(3600))),
            _ => None,
        }
    })
    .await
    .expect("a receiver")
}

async fn telling(stage: &Stage, receiver: &Receiver) -> Running {
    let arguments = [
        ["--outside", "webhook"],
        ["--webhook-url", &receiver.url()],
        ["--webhook-status-url", &receiver.status_url()],
        ["--webhook-secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        ["--webhook-timeout", "1s"],
        ["--outside-backoff", "10ms"],
        ["--outside-backoff-max", "100ms"],
        ["--outside-circuit-wait-max", "50ms"],
    ];
    let mut arguments = arguments.as_flattened().to_vec();
    arguments.push("--webhook-allow-private");
    stage.consumer(&arguments).await
}

#[tokio::test(flavor = "multi_thread")]
async fn k17_processed_is_not_delivered() {
    let stage = Stage::new("k17").await;
    let ticket = Uuid::now_v7();
    stage.ticket("acme", ticket).await;
    let up = Arc::new(AtomicBool::new(false));
    let receiver = moody(&up).await;
    let running = telling(&stage, &receiver).await;
    let versions = 1..=i64::try_from(EVENTS).unwrap();
    let events: Vec<Event> = versions
        .map(|version| ticket_event("acme", ticket, version))
        .collect();
    stage.publish(&events).await;

    let receipts = "select count(*) from ticketflow.effect_receipts
                    where effect_name = 'notification'";
    let wanted = i64::try_from(EVENTS).unwrap();
    stage.until(receipts, wanted).await;
    stage.until_empty().await;
    let delivered = "select count(*) from ticketflow.business_tasks where status = 'delivered'";
    let waiting = "select count(*) from ticketflow.business_tasks
                   where status in ('pending', 'sending', 'unknown')";
    assert_eq!(
        stage.count(delivered).await,
        0,
        "processed is not delivered"
    );
    assert_eq!(
        stage.count(waiting).await,
        wanted,
        "and nothing is given up"
    );

    up.store(true, Ordering::SeqCst);
    stage.until(delivered, wanted).await;
    running.stop().await;
    let keys = stage
        .database
        .query("select task_id::text from ticketflow.business_tasks", &[])
        .await
        .expect("tasks");
    let keys: BTreeSet<String> = keys.iter().map(|row| row.get(0)).collect();
    assert_eq!(receiver.taken(), keys, "each is delivered, nothing else is");
    one_body_for_each_key(&receiver);
    let requests = receiver.requests();
    let asked = requests.iter().any(|request| request.method == "GET");
    assert!(asked, "the lost answers were asked for");
    assert_eq!(
        receiver.taken_again(),
        BTreeSet::new(),
        "so nothing went out twice"
    );
}

/// Whatever came under one key said the same.
fn one_body_for_each_key(receiver: &Receiver) {
    let requests = receiver.requests();
    let posts = requests.iter().filter(|request| request.method == "POST");
    let said: BTreeSet<(&str, &[u8])> = posts
        .map(|request| (request.key(), request.body.as_slice()))
        .collect();
    let keys: BTreeSet<&str> = said.iter().map(|(key, _)| *key).collect();
    assert_eq!(said.len(), keys.len());
}
