//! Receipt and effect are one; what refuses is deferred, what never can be is parked.

use event::HeaderValue;
use inbox::{Delivery, Outcome, Reason};

use crate::support::{Recorder, World, delivered, deliveries, delivery, event, events};

#[tokio::test(flavor = "multi_thread")]
async fn a_set_is_applied_once_however_often_it_comes() {
    let world = World::new("applied_once").await;
    let effect = Recorder::new("one");
    let mut all = events("a", 50);
    all.extend(events("b", 50));
    let set = deliveries(all.iter().chain(&all[..10]));
    let outcomes = world.inbox.apply_set(&effect, &set).await.unwrap();
    assert!(outcomes[..100].iter().all(|one| *one == Outcome::Applied));
    assert!(outcomes[100..].iter().all(|one| *one == Outcome::Duplicate));
    let again = world.inbox.apply_set(&effect, &set).await.unwrap();
    assert!(again.iter().all(|one| *one == Outcome::Duplicate));
    assert_eq!((world.receipts().await, world.effects().await), (100, 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_after_the_effect_wrote_leaves_neither_receipt_nor_effect() {
    let world = World::new("neither").await;
    let one = delivery(&event("a", 1));
    let outcome = world
        .inbox
        .apply_once(&Recorder::failing("e"), &one)
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::Deferred);
    assert_eq!((world.receipts().await, world.effects().await), (0, 0));
    let outcome = world
        .inbox
        .apply_once(&Recorder::new("e"), &one)
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::Applied);
    assert_eq!((world.receipts().await, world.effects().await), (1, 1));
    assert!(world.rows().await.is_empty(), "its receipt stands for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_refuses_costs_only_itself_and_is_parked_in_the_end() {
    let world = World::new("refuses").await;
    let effect = Recorder::new("e");
    let all = events("a", 20);
    effect.refuse(&all[7]);
    let outcomes = world
        .inbox
        .apply_set(&effect, &deliveries(&all))
        .await
        .unwrap();
    assert_eq!(outcomes[7], Outcome::Deferred);
    assert_eq!(world.effects().await, 19);
    // Tried again it is refused again, up to as often as it may be.
    assert_eq!(world.retry_all(&effect).await, [Outcome::Deferred]);
    assert_eq!(
        world.retry_all(&effect).await,
        [Outcome::Parked(Reason::Attempts)]
    );
    assert_eq!(world.receipts().await, 19);
    // A copy of what is parked is only acked.
    effect.take(&all[7]);
    let copy = world
        .inbox
        .apply_once(&effect, &delivery(&all[7]))
        .await
        .unwrap();
    assert_eq!(copy, Outcome::Duplicate);
    assert_eq!(world.effects().await, 19);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deferred_one_is_applied_from_its_row_once() {
    let world = World::new("from_its_row").await;
    let effect = Recorder::new("e");
    let one = event("a", 1);
    effect.refuse(&one);
    world
        .inbox
        .apply_once(&effect, &delivery(&one))
        .await
        .unwrap();
    effect.take(&one);
    assert_eq!(world.retry_all(&effect).await, [Outcome::Applied]);
    let copy = world
        .inbox
        .apply_once(&effect, &delivery(&one))
        .await
        .unwrap();
    assert_eq!(copy, Outcome::Duplicate);
    assert_eq!((world.receipts().await, world.effects().await), (1, 1));
    let body: String = world
        .database
        .query_one("select body from effects", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(body, "{\"v\":1}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_with_an_infinite_time_is_tried_like_its_neighbour() {
    let world = World::new("infinite").await;
    let effect = Recorder::new("e");
    let both = [event("a", 1), event("b", 1)];
    for one in &both {
        effect.refuse(one);
    }
    let kept = world.inbox.apply_set(&effect, &deliveries(&both)).await;
    assert_eq!(kept.unwrap(), [Outcome::Deferred, Outcome::Deferred]);
    for one in &both {
        effect.take(one);
    }
    world
        .run(
            "update ticketflow.deferred_deliveries set changed_at = 'infinity'
             where delivery_id = (select min(delivery_id) from ticketflow.deferred_deliveries)",
        )
        .await;
    let outcomes = world.retry_all(&effect).await;
    assert_eq!(outcomes, [Outcome::Applied, Outcome::Applied]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_receipts_key_means_duplicate() {
    let world = World::new("other_constraint").await;
    world.run("create unique index on effects (tenant)").await;
    let effect = Recorder::new("e");
    let all = [event("a", 1), event("b", 1)];
    let outcomes = world
        .inbox
        .apply_set(&effect, &deliveries(&all))
        .await
        .unwrap();
    let deferred = outcomes
        .iter()
        .filter(|one| **one == Outcome::Deferred)
        .count();
    assert_eq!(
        deferred, 1,
        "{outcomes:?}: a unique violation of the effect is its failure"
    );
    let detail: String = world
        .database
        .query_one("select detail from ticketflow.deferred_deliveries", &[])
        .await
        .unwrap()
        .get(0);
    assert!(
        detail.contains("23505") && detail.contains("effects_tenant_idx"),
        "{detail}"
    );
    assert!(
        !detail.contains("acme"),
        "the DETAIL with the row's values is not kept: {detail}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn constraints_checked_at_commit_are_the_effects_own_failure() {
    let world = World::new("deferred_constraint").await;
    world
        .run("create table known (id text primary key); insert into known values ('{\"v\":1}');
              grant select on known to ticketflow_consumer;
              alter table effects add foreign key (body) references known deferrable initially deferred")
        .await;
    let all = events("a", 2);
    let outcomes = world
        .inbox
        .apply_set(&Recorder::new("e"), &deliveries(&all))
        .await
        .unwrap();
    assert_eq!(outcomes, [Outcome::Applied, Outcome::Deferred]);
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_and_namespaces_are_independent() {
    let world = World::new("independent").await;
    let (first, second) = (Recorder::new("first"), Recorder::failing("second"));
    let one = event("a", 1);
    let mut other_source = one.clone();
    other_source.identity.source = event::Source::parse("billing").unwrap();
    let mut other_tenant = one.clone();
    other_tenant.identity.tenant_id = event::TenantId::parse("globex").unwrap();
    let all = deliveries([&one, &other_source, &other_tenant]);
    let applied = world.inbox.apply_set(&first, &all).await.unwrap();
    assert!(
        applied.iter().all(|outcome| *outcome == Outcome::Applied),
        "{applied:?}"
    );
    let deferred = world.inbox.apply_set(&second, &all).await.unwrap();
    assert!(deferred.iter().all(|outcome| *outcome == Outcome::Deferred));
    assert_eq!((world.receipts().await, world.effects().await), (3, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_event_is_kept_with_its_bytes_and_costs_its_neighbours_nothing() {
    let world = World::new("unreadable").await;
    let effect = Recorder::new("e");
    let good = event("a", 1);
    let mut foreign = delivered(&event("b", 1));
    foreign.routing_key = foreign.routing_key.replace("acme", "globex");
    let mut typed = delivered(&event("c", 1));
    typed
        .headers
        .insert("cloudEvents:id".to_owned(), HeaderValue::Other("timestamp"));
    let mut nul = delivered(&event("d", 1));
    nul.headers.insert(
        "cloudEvents:source".to_owned(),
        HeaderValue::Text("a\0b".to_owned()),
    );
    nul.routing_key = "\0".to_owned();
    let mut never = event("e", 1);
    never.payload = "never".into();
    let pool = event::PoolName::parse("shared").unwrap();
    let empty = Delivery::read(pool.clone(), event::Delivered::default());
    let read = |one| Delivery::read(pool.clone(), one);
    let set = [
        empty.clone(),
        read(foreign),
        delivery(&good),
        read(typed),
        read(nul),
        delivery(&never),
        empty,
    ];
    let outcomes = world.inbox.apply_set(&effect, &set).await.unwrap();
    let unreadable = Outcome::Parked(Reason::Unreadable);
    let mut wanted = vec![unreadable; 7];
    wanted[2] = Outcome::Applied;
    wanted[5] = Outcome::Parked(Reason::Never);
    assert_eq!(outcomes, wanted);
    let copies = "select copies from ticketflow.deferred_deliveries where copies > 1";
    assert_eq!(world.count(copies).await, 2, "both empty ones are one row");
    let applicable = "select count(*) from ticketflow.deferred_deliveries where applicable";
    assert_eq!(
        world.count(applicable).await,
        1,
        "only what could be read may ever be applied"
    );
    assert_eq!(world.effects().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn below_the_floor_or_ahead_of_time_nothing_is_applied() {
    let world = World::new("floor").await;
    let effect = Recorder::new("e");
    let made = |hours: i64| {
        let moment = chrono::Utc::now() + chrono::TimeDelta::hours(hours);
        let millis = u64::try_from(moment.timestamp_millis()).unwrap();
        uuid::Builder::from_unix_timestamp_millis(millis, &[7; 10]).into_uuid()
    };
    world
        .run(
            "update ticketflow.receipt_floor
             set floor = ticketflow.uuid_v7_floor(clock_timestamp() - interval '1 hour')",
        )
        .await;
    let (mut old, mut ahead, new) = (event("a", 1), event("b", 1), event("c", 1));
    old.identity.event_id = made(-2);
    ahead.identity.event_id = made(25);
    let outcomes = world
        .inbox
        .apply_set(&effect, &deliveries([&old, &ahead, &new]))
        .await
        .unwrap();
    let wanted = [
        Outcome::Parked(Reason::BelowFloor),
        Outcome::Parked(Reason::Ahead),
        Outcome::Applied,
    ];
    assert_eq!(outcomes, wanted);
    assert_eq!(world.receipts().await, 1, "what is parked keeps no receipt");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_below_the_floor_is_still_applied_and_its_copy_only_acked() {
    let world = World::new("row_below").await;
    let effect = Recorder::new("e");
    let one = event("a", 1);
    effect.refuse(&one);
    world
        .inbox
        .apply_once(&effect, &delivery(&one))
        .await
        .unwrap();
    world
        .run("update ticketflow.receipt_floor set floor = ticketflow.uuid_v7_floor(clock_timestamp() + interval '1 hour')")
        .await;
    effect.take(&one);
    let copy = world
        .inbox
        .apply_once(&effect, &delivery(&one))
        .await
        .unwrap();
    assert_eq!(copy, Outcome::Duplicate);
    assert_eq!(world.retry_all(&effect).await, [Outcome::Applied]);
    assert_eq!(world.effects().await, 1);
}
