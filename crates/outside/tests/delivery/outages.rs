//! The database goes away, the process is asked to stop.

use std::time::Duration;

use sandbox::{FaultProxy, Receiver, Reply, Request};

use crate::world::{World, at_first, consumer_database, run, to, until};

#[tokio::test]
async fn a_database_that_goes_away_loses_nothing() {
    let world = World::new("database_away").await;
    let tasks = world.tasks("acme", 400).await;
    let port = world.site.sandbox().postgres().port();
    let proxy = FaultProxy::start(port).await.unwrap();
    let database = consumer_database(&world.site.database_url_through(proxy.port()));
    let receiver = Receiver::start(|_: &Request| None).await.unwrap();
    let running = run(database, to(&receiver));
    for part in [50, 150, 250] {
        until("some are delivered", async || {
            receiver.taken().len() >= part
        })
        .await;
        proxy.cut();
        until("it says so", async || !running.readiness.is_ready()).await;
        proxy.restore();
    }
    // Claims whose COMMIT was answered to nobody come back with their lease.
    until("the rest are in hand", async || {
        world.count("pending").await + world.count("unknown").await == 0
    })
    .await;
    let end = "update ticketflow.business_tasks set leased_until = clock_timestamp(),
               next_attempt_at = clock_timestamp() where status = 'sending'";
    world.execute(end).await;
    world.until_all("delivered").await;
    assert!(running.readiness.is_ready());
    running.stop().await.unwrap();
    assert_eq!(receiver.taken(), tasks);
}

#[tokio::test]
async fn a_clean_stop_waits_for_answers_and_starts_nothing() {
    let world = World::new("stop").await;
    world.tasks("acme", 100).await;
    let receiver = at_first(|| Reply::take_late(Duration::from_millis(300))).await;
    let running = world.run(to(&receiver));
    until("requests are out", async || receiver.taken().len() > 1).await;
    running.stop().await.unwrap();
    let delivered = usize::try_from(world.count("delivered").await).unwrap();
    assert_eq!(receiver.taken().len(), delivered, "each answer was settled");
    assert_eq!(world.count("sending").await, 0);
    assert!(world.count("pending").await > 0);
}

#[tokio::test]
async fn a_request_that_outlasts_the_stop_is_in_doubt_at_once() {
    let world = World::new("stop_in_doubt").await;
    world.tasks("acme", 1).await;
    let receiver = at_first(Reply::take_in_silence).await;
    let mut brief = to(&receiver);
    brief.grace = Duration::from_millis(600);
    let running = world.run(brief);
    until("it is out", async || receiver.taken().len() == 1).await;
    running.stop().await.unwrap();
    assert_eq!(world.count("unknown").await, 1);
}

#[tokio::test]
async fn a_stop_while_the_database_is_away_is_still_a_clean_one() {
    let world = World::new("stop_away").await;
    world.tasks("acme", 1).await;
    let port = world.site.sandbox().postgres().port();
    let proxy = FaultProxy::start(port).await.unwrap();
    let database = consumer_database(&world.site.database_url_through(proxy.port()));
    let receiver = at_first(|| Reply::take_late(Duration::from_millis(500))).await;
    let running = run(database, to(&receiver));
    until("it is out", async || receiver.taken().len() == 1).await;
    proxy.cut();
    running.stop().await.unwrap();
    assert_eq!(world.count("sending").await, 1, "its lease will end");
}
