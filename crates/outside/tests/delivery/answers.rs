//! What an answer does to a task.

use std::time::{Duration, Instant};

use sandbox::{Receiver, Reply, Request};

use crate::world::{World, at_first, to};

/// Runs one task against a first answer, until it has the status.
async fn ends(name: &str, reply: fn() -> Reply, status: &str) -> (World, Receiver) {
    let world = World::new(name).await;
    world.tasks("acme", 1).await;
    let receiver = at_first(reply).await;
    let running = world.run(to(&receiver));
    world.until_all(status).await;
    running.stop().await.unwrap();
    (world, receiver)
}

#[tokio::test]
async fn a_refusal_for_good_parks_the_task_with_what_was_said() {
    let refused = || Reply::answer(422).body("no such channel");
    let (world, receiver) = ends("refused", refused, "parked").await;
    assert_eq!(
        world.only("parked_reason").await.as_deref(),
        Some("refused")
    );
    let told = world.only("last_error").await.unwrap();
    assert_eq!(told, "status 422: no such channel");
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn a_failing_server_is_tried_again_under_the_same_key_with_the_same_bytes() {
    let (world, receiver) = ends("fails", || Reply::answer(500), "delivered").await;
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].key(), requests[1].key());
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(world.only("attempts").await.as_deref(), Some("2"));
    assert_eq!(world.only("last_error").await, None);
}

#[tokio::test]
async fn an_answer_without_end_is_cut() {
    let (_world, receiver) = ends("giant", Reply::take_giant, "delivered").await;
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let begun = Instant::now();
    let busy = || Reply::answer(429).header("retry-after", "1");
    let (_world, receiver) = ends("retry_after", busy, "delivered").await;
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(receiver.requests().len(), 2);
}

#[tokio::test]
async fn a_wait_that_an_endpoint_asks_for_has_a_bound() {
    let world = World::new("retry_bound").await;
    world.tasks("acme", 1).await;
    let busy = || Reply::answer(503).header("retry-after", "864000");
    let receiver = at_first(busy).await;
    let mut config = to(&receiver);
    config.policy.retry_after_max = Duration::from_millis(100);
    let running = world.run(config);
    world.until_all("delivered").await;
    running.stop().await.unwrap();
}

#[tokio::test]
async fn too_many_failures_park_the_task() {
    let world = World::new("attempts").await;
    world.tasks("acme", 1).await;
    let receiver = Receiver::start(|_: &Request| Some(Reply::answer(500)))
        .await
        .unwrap();
    let mut config = to(&receiver);
    config.policy.max_attempts = 3;
    let running = world.run(config);
    world.until_all("parked").await;
    running.stop().await.unwrap();
    assert_eq!(
        world.only("parked_reason").await.as_deref(),
        Some("attempts")
    );
    assert_eq!(receiver.requests().len(), 3);
}
