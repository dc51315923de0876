//! An effect that keeps order applies the versions of an aggregate one after the other.

use std::time::Duration;

use inbox::{Outcome, Policy};

use crate::support::{Recorder, World, deliveries, delivery, events, quick};

async fn versions(world: &World) -> Vec<(i64, String)> {
    let rows = world
        .database
        .query("select version, place from effects order by entry", &[])
        .await;
    rows.unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect()
}

fn in_order(last: i64) -> Vec<(i64, String)> {
    (1..=last)
        .map(|version| (version, "next".to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shuffled_set_is_applied_in_order() {
    let world = World::new("shuffled_set").await;
    let effect = Recorder::ordered("e");
    let mut all = events("a", 30);
    all.reverse();
    let outcomes = world
        .inbox
        .apply_set(&effect, &deliveries(&all))
        .await
        .unwrap();
    assert!(outcomes.iter().all(|one| *one == Outcome::Applied));
    assert_eq!(versions(&world).await, in_order(30));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_early_waits_and_is_woken_without_spending_an_attempt() {
    let world = World::new("early_waits").await;
    let effect = Recorder::ordered("e");
    let all = events("a", 6);
    for place in [5, 3, 1, 2, 4] {
        let outcome = world
            .inbox
            .apply_once(&effect, &delivery(&all[place]))
            .await
            .unwrap();
        assert_eq!(outcome, Outcome::Waiting);
    }
    assert!(world.inbox.due(&["e"], 10).await.unwrap().is_empty());
    assert_eq!(
        world
            .inbox
            .apply_once(&effect, &delivery(&all[0]))
            .await
            .unwrap(),
        Outcome::Applied
    );
    // Each one wakes the next: nothing else made them due.
    for _ in 0..5 {
        let due = world.inbox.due(&["e"], 10).await.unwrap();
        assert_eq!(due.len(), 1);
        let outcome = world.inbox.retry(&effect, &due[0]).await.unwrap();
        assert_eq!(outcome, Some(Outcome::Applied));
    }
    assert_eq!(versions(&world).await, in_order(6));
    let late = world
        .inbox
        .apply_once(&effect, &delivery(&all[2]))
        .await
        .unwrap();
    assert_eq!(late, Outcome::Duplicate);
}

#[tokio::test(flavor = "multi_thread")]
async fn successors_wait_for_one_that_is_refused_however_long() {
    let policy = Policy {
        order_wait: Duration::ZERO,
        ..quick()
    };
    let world = World::with("refused_head", policy).await;
    let effect = Recorder::ordered("e");
    let all = events("a", 3);
    effect.refuse(&all[0]);
    let outcomes = world
        .inbox
        .apply_set(&effect, &deliveries(&all))
        .await
        .unwrap();
    assert_eq!(
        outcomes,
        [Outcome::Deferred, Outcome::Waiting, Outcome::Waiting]
    );
    // Their wait is over at once, but one before them may still be applied: even when parked.
    for _ in 0..4 {
        for due in due_again(&world).await {
            world.inbox.retry(&effect, &due).await.unwrap();
        }
    }
    assert!(versions(&world).await.is_empty());
    assert_eq!(
        world.rows().await[0],
        ("parked".to_owned(), "attempts".to_owned())
    );
    world
        .run(
            "update ticketflow.deferred_deliveries set state = 'deferred', attempts = 0,
               next_attempt_at = clock_timestamp() where state = 'parked'",
        )
        .await;
    effect.take(&all[0]);
    for _ in 0..4 {
        for due in due_again(&world).await {
            world.inbox.retry(&effect, &due).await.unwrap();
        }
    }
    assert_eq!(versions(&world).await, in_order(3));
}

async fn due_again(world: &World) -> Vec<inbox::Due> {
    world
        .run(
            "update ticketflow.deferred_deliveries set next_attempt_at = clock_timestamp(),
               changed_at = clock_timestamp() where state <> 'parked'",
        )
        .await;
    world.inbox.due(&["e"], 10).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_knows_of_is_given_up_after_the_wait_and_noted() {
    let policy = Policy {
        order_wait: Duration::ZERO,
        ..quick()
    };
    let world = World::with("gap", policy).await;
    let effect = Recorder::ordered("e");
    let all = events("a", 4);
    world
        .inbox
        .apply_once(&effect, &delivery(&all[0]))
        .await
        .unwrap();
    assert_eq!(
        world
            .inbox
            .apply_once(&effect, &delivery(&all[2]))
            .await
            .unwrap(),
        Outcome::Waiting
    );
    assert_eq!(world.retry_all(&effect).await, [Outcome::Applied]);
    world
        .inbox
        .apply_once(&effect, &delivery(&all[3]))
        .await
        .unwrap();
    // The one that was given up comes after all.
    world
        .inbox
        .apply_once(&effect, &delivery(&all[1]))
        .await
        .unwrap();
    let found = versions(&world).await;
    let wanted = [(1, "next"), (3, "gap"), (4, "next"), (2, "late")];
    assert_eq!(
        found,
        wanted.map(|(version, place)| (version, place.to_owned()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_the_outbox_that_may_still_come_is_waited_for() {
    let policy = Policy {
        order_wait: Duration::ZERO,
        ..quick()
    };
    let world = World::with("outbox_waits", policy).await;
    let effect = Recorder::ordered("e");
    world
        .run("insert into ticketflow.tenants (tenant_id) values ('acme')")
        .await;
    world
        .run("select ticketflow.record_event('acme', 'order', 'a', 'order.changed', '{}'::text)")
        .await;
    let second = events("a", 2).pop().unwrap();
    world
        .inbox
        .apply_once(&effect, &delivery(&second))
        .await
        .unwrap();
    assert_eq!(
        try_due(&world, &effect).await,
        [Outcome::Waiting],
        "its predecessor is pending"
    );
    world.run("update ticketflow.outbox_events set state = 'published', published_at = clock_timestamp()").await;
    assert_eq!(
        try_due(&world, &effect).await,
        [Outcome::Waiting],
        "it is on its way"
    );
    world
        .run("update ticketflow.outbox_events set state = 'skipped', published_at = null")
        .await;
    assert_eq!(
        try_due(&world, &effect).await,
        [Outcome::Applied],
        "it was given up"
    );
}

async fn try_due(world: &World, effect: &Recorder) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for due in due_again(world).await {
        outcomes.extend(world.inbox.retry(effect, &due).await.unwrap());
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn events_without_a_version_are_outside_the_order() {
    let world = World::new("unversioned").await;
    let effect = Recorder::ordered("e");
    let mut delayed = events("a", 1).remove(0);
    delayed.version = None;
    delayed.previous_version = None;
    let outcome = world
        .inbox
        .apply_once(&effect, &delivery(&delayed))
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::Applied);
    assert_eq!(
        world
            .count("select count(*) from ticketflow.effect_heads")
            .await,
        0
    );
}
