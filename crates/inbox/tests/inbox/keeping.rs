//! Receipts are kept for the window: the floor first, then what is below it.

use std::time::Duration;

use crate::support::{Recorder, World, delivery, event};

const DAY: Duration = Duration::from_secs(86_400);
const FLOOR: &str = "select count(*) from ticketflow.receipt_floor
  where floor = truncated
    and floor = ticketflow.uuid_v7_floor((clock_timestamp() at time zone 'UTC')::date::timestamp at time zone 'UTC')";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_older_than_the_window_goes_and_the_floor_says_so() {
    let world = World::new("retention").await;
    let effect = Recorder::new("e");
    let made = |days: i64| {
        let moment = chrono::Utc::now() - chrono::TimeDelta::days(days);
        let millis = u64::try_from(moment.timestamp_millis()).unwrap();
        let mut event = event("a", 1);
        event.identity.event_id =
            uuid::Builder::from_unix_timestamp_millis(millis, &[7; 10]).into_uuid();
        event
    };
    // Today's, yesterday's (it has a partition), and one of a day that only the default one takes.
    for days in [0, 1, 9] {
        world
            .inbox
            .apply_once(&effect, &delivery(&made(days)))
            .await
            .unwrap();
    }
    let nothing = world.inbox.retain(DAY * 30).await.unwrap();
    assert_eq!((nothing.emptied, nothing.deleted), (0, 0));
    assert_eq!(world.receipts().await, 3);
    let done = world.inbox.retain(Duration::from_secs(1)).await.unwrap();
    assert_eq!(
        (done.emptied, done.dropped, done.deleted, done.skipped),
        (1, 1, 1, 0)
    );
    assert_eq!(world.receipts().await, 1);
    assert_eq!(world.count(FLOOR).await, 1);
    // It never goes back.
    world.inbox.retain(DAY * 30).await.unwrap();
    assert_eq!(world.count(FLOOR).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_somebody_holds_is_left_for_the_next_round() {
    let world = World::new("retention_held").await;
    world
        .run("begin; select count(*) from ticketflow.effect_receipts;")
        .await;
    let done = world.inbox.retain(Duration::from_secs(1)).await.unwrap();
    assert_eq!((done.emptied, done.skipped), (0, 1));
    let floor = "select count(*) from ticketflow.receipt_floor where truncated < floor";
    assert_eq!(
        world.count(floor).await,
        1,
        "the floor is up, nothing is gone"
    );
    world.run("commit").await;
    let done = world.inbox.retain(Duration::from_secs(1)).await.unwrap();
    assert_eq!((done.emptied, done.skipped), (1, 0));
    assert_eq!(world.count(FLOOR).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_made_ahead_once() {
    let world = World::new("partitions").await;
    world
        .run("select ticketflow.drop_partition('effect_receipts', (clock_timestamp() at time zone 'UTC')::date + 3)")
        .await;
    assert_eq!(world.inbox.make_partitions().await.unwrap(), 1);
    assert_eq!(world.inbox.make_partitions().await.unwrap(), 0);
}
