//! One identity, two contents: the first stands, the other is evidence.

use inbox::{Outcome, Reason};

use crate::support::{Recorder, World, deliveries, delivery, event, other_content};

const CONFLICT: Outcome = Outcome::Parked(Reason::Conflict);
const NOTED: &str = "select count(*) from ticketflow.event_conflicts";

#[tokio::test(flavor = "multi_thread")]
async fn the_first_content_stands_and_the_other_is_parked() {
    let world = World::new("conflict").await;
    let effect = Recorder::new("e");
    let first = event("a", 1);
    let second = other_content(&first, "other");
    // In one batch, then one by one.
    let outcomes = world
        .inbox
        .apply_set(&effect, &deliveries([&first, &second]))
        .await
        .unwrap();
    assert_eq!(outcomes, [Outcome::Applied, CONFLICT]);
    let again = world
        .inbox
        .apply_once(&effect, &delivery(&second))
        .await
        .unwrap();
    assert_eq!(again, CONFLICT);
    let first_again = world
        .inbox
        .apply_once(&effect, &delivery(&first))
        .await
        .unwrap();
    assert_eq!(first_again, Outcome::Duplicate);
    assert_eq!((world.receipts().await, world.effects().await), (1, 1));
    assert_eq!(world.count(NOTED).await, 1);
    let rows = world.rows().await;
    assert_eq!(rows, [("parked".to_owned(), "conflict".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_a_row_came_first_too() {
    let world = World::new("conflict_waiting").await;
    let effect = Recorder::new("e");
    let first = event("a", 1);
    effect.refuse(&first);
    world
        .inbox
        .apply_once(&effect, &delivery(&first))
        .await
        .unwrap();
    effect.take(&first);
    let other = world
        .inbox
        .apply_once(&effect, &delivery(&other_content(&first, "other")))
        .await;
    assert_eq!(other.unwrap(), CONFLICT);
    assert_eq!(world.retry_all(&effect).await, [Outcome::Applied]);
    let body: String = world
        .database
        .query_one("select body from effects", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(body, "{\"v\":1}");
    assert_eq!(world.count(NOTED).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_across_effects_is_noted() {
    let world = World::new("conflict_across").await;
    let first = event("a", 1);
    let second = other_content(&first, "other");
    world
        .inbox
        .apply_once(&Recorder::new("one"), &delivery(&first))
        .await
        .unwrap();
    assert_eq!(world.count(NOTED).await, 0);
    world
        .inbox
        .apply_once(&Recorder::new("two"), &delivery(&second))
        .await
        .unwrap();
    assert_eq!(world.count(NOTED).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_contents_at_once_leave_one_effect_and_the_evidence() {
    let world = World::new("conflict_at_once").await;
    let effect = Recorder::new("e");
    for round in 0..20 {
        let first = event(&format!("a{round}"), 1);
        let second = other_content(&first, "other");
        let (one, two) = (delivery(&first), delivery(&second));
        let (a, b) = tokio::join!(
            world.inbox.apply_once(&effect, &one),
            world.inbox.apply_once(&effect, &two),
        );
        let outcomes = [a.unwrap(), b.unwrap()];
        assert!(
            outcomes.contains(&Outcome::Applied) && outcomes.contains(&CONFLICT),
            "{outcomes:?}"
        );
    }
    assert_eq!((world.effects().await, world.count(NOTED).await), (20, 20));
}
