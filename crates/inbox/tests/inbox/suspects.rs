//! What came back as a dead letter is tried alone; only what kills again is parked.

use std::time::Duration;

use inbox::{Outcome, Policy, Reason};

use crate::support::{Recorder, World, delivery, event, quick};

const DUE: &str = "update ticketflow.deferred_deliveries
  set next_attempt_at = clock_timestamp() where state = 'suspect'";

#[tokio::test(flavor = "multi_thread")]
async fn an_innocent_is_applied_and_a_duplicate_only_acked() {
    let world = World::new("innocent").await;
    let effect = Recorder::new("e");
    let (one, done) = (event("a", 1), event("b", 1));
    world
        .inbox
        .apply_once(&effect, &delivery(&done))
        .await
        .unwrap();
    assert_eq!(
        world
            .inbox
            .suspect(&effect, &delivery(&done))
            .await
            .unwrap(),
        Outcome::Duplicate
    );
    assert_eq!(
        world.inbox.suspect(&effect, &delivery(&one)).await.unwrap(),
        Outcome::Suspect
    );
    let copy = world
        .inbox
        .apply_once(&effect, &delivery(&one))
        .await
        .unwrap();
    assert_eq!(
        copy,
        Outcome::Duplicate,
        "a copy must not be tried among others"
    );
    assert_eq!(world.effects().await, 1);
    assert_eq!(world.retry_all(&effect).await, [Outcome::Applied]);
    assert_eq!((world.receipts().await, world.effects().await), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_leases_that_ran_out_park_it() {
    let policy = Policy {
        lease: Duration::from_millis(50),
        ..quick()
    };
    let world = World::with("kills", policy).await;
    let effect = Recorder::new("e");
    world
        .inbox
        .suspect(&effect, &delivery(&event("a", 1)))
        .await
        .unwrap();
    for kills in 0..2 {
        assert_eq!(
            world
                .count("select kills from ticketflow.deferred_deliveries")
                .await,
            kills
        );
        // What a process that was killed in the middle of its try leaves behind.
        world.run(DUE).await;
        let due = world.inbox.due(&["e"], 1).await.unwrap();
        if kills == 0 {
            world
                .run(
                    "update ticketflow.deferred_deliveries set lease_token = gen_random_uuid(),
                      leased_until = clock_timestamp() - interval '1 microsecond'",
                )
                .await;
            let slow = Recorder::failing("e");
            assert_eq!(
                world.inbox.try_suspect(&slow, &due[0], "t").await.unwrap(),
                Some(Outcome::Deferred)
            );
            world.run("update ticketflow.deferred_deliveries set state = 'suspect', reason = 'suspect'").await;
        }
    }
    world
        .run(
            "update ticketflow.deferred_deliveries set next_attempt_at = clock_timestamp(),
              lease_token = gen_random_uuid(), leased_until = clock_timestamp()",
        )
        .await;
    let due = world.inbox.due(&["e"], 1).await.unwrap();
    let outcome = world
        .inbox
        .try_suspect(&effect, &due[0], "t")
        .await
        .unwrap();
    assert_eq!(outcome, Some(Outcome::Parked(Reason::Kills)));
    assert_eq!(
        world.rows().await,
        [("parked".to_owned(), "kills".to_owned())]
    );
    assert_eq!(world.effects().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_under_lease_is_nobody_elses() {
    let world = World::new("leased").await;
    let effect = Recorder::new("e");
    world
        .inbox
        .suspect(&effect, &delivery(&event("a", 1)))
        .await
        .unwrap();
    world.run(DUE).await;
    let due = world.inbox.due(&["e"], 1).await.unwrap();
    world
        .run(
            "update ticketflow.deferred_deliveries set lease_token = gen_random_uuid(),
              leased_until = clock_timestamp() + interval '1 hour'",
        )
        .await;
    assert_eq!(
        world
            .inbox
            .try_suspect(&effect, &due[0], "t")
            .await
            .unwrap(),
        None
    );
    assert!(world.inbox.due(&["e"], 1).await.unwrap().is_empty());
    assert_eq!(
        world
            .count("select kills from ticketflow.deferred_deliveries")
            .await,
        0
    );
}
