//! Many consumers at once.

use std::sync::Arc;

use inbox::{Delivery, Outcome};

use crate::support::{Recorder, World, delivery, events};

#[tokio::test(flavor = "multi_thread")]
async fn one_delivery_to_eight_at_once_is_applied_once() {
    let world = World::new("eight_at_once").await;
    let effect = Recorder::new("e");
    for one in events("a", 20) {
        let copies: Vec<Delivery> = (0..8).map(|_| delivery(&one)).collect();
        let tries = copies
            .iter()
            .map(|copy| world.inbox.apply_once(&effect, copy));
        let outcomes = futures_util::future::try_join_all(tries).await.unwrap();
        let applied = outcomes
            .iter()
            .filter(|one| **one == Outcome::Applied)
            .count();
        assert_eq!(applied, 1, "{outcomes:?}");
    }
    assert_eq!((world.receipts().await, world.effects().await), (20, 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn shuffled_copies_in_sets_to_eight_consumers_are_applied_once_and_in_order() {
    let world = Arc::new(World::new("shuffled_copies").await);
    let effect = Arc::new(Recorder::ordered("e"));
    let mut copies = Vec::new();
    for aggregate in 0..20 {
        for one in events(&format!("a{aggregate}"), 10) {
            let times = fastrand::usize(1..=20);
            copies.extend(std::iter::repeat_n(delivery(&one), times));
        }
    }
    fastrand::shuffle(&mut copies);
    let share = copies.len() / 8 + 1;
    let consumers: Vec<_> = copies
        .chunks(share)
        .map(<[Delivery]>::to_vec)
        .map(|mine| tokio::spawn(consume(Arc::clone(&world), Arc::clone(&effect), mine)))
        .collect();
    for consumer in consumers {
        consumer.await.unwrap();
    }
    world.retry_all(effect.as_ref()).await;
    assert!(world.rows().await.is_empty());
    assert_eq!((world.receipts().await, world.effects().await), (200, 200));
    assert_eq!(
        world
            .count("select count(*) from effects where place <> 'next'")
            .await,
        0
    );
}

async fn consume(world: Arc<World>, effect: Arc<Recorder>, mine: Vec<Delivery>) {
    for set in mine.chunks(37) {
        world.inbox.apply_set(effect.as_ref(), set).await.unwrap();
        let due = world.inbox.due(&["e"], 20).await.unwrap();
        for one in due {
            world.inbox.retry(effect.as_ref(), &one).await.unwrap();
        }
    }
}
