//! Queues that vanish under load: what was confirmed by one queue only is not taken as published,
//! and a new queue gets what the old one held.

use std::collections::BTreeMap;

use event::Event;

use crate::relaying::{Rig, assert_first_arrivals_in_order};

const SEARCH: &str = "ticketflow.shared.search";
const NOTIFICATION: &str = "ticketflow.shared.notification";
const READY: &str =
    "select count(*) from ticketflow.effect_queues where ready_generation = generation";

/// How often each event is among these.
fn copies(events: &[Event]) -> BTreeMap<String, usize> {
    let mut copies = BTreeMap::new();
    for event in events {
        *copies
            .entry(event.identity.event_id.to_string())
            .or_default() += 1;
    }
    copies
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_deleted_under_load_comes_back_with_everything() {
    let rig = Rig::start("deleted").await;
    rig.queue("search", &["ticket.#"]).await;
    rig.queue("notification", &["ticket.#"]).await;
    let relay = rig.relay(&[]);
    let mut recorded = 0;
    for deletion in 1..=3 {
        for _ in 0..10 {
            rig.record(40, 2).await;
            recorded += 80;
        }
        // Some of it is in the queue that goes, some is on its way, some not even claimed.
        let published = "select count(*) from ticketflow.outbox_events where state = 'published'";
        rig.until_at_least(published, recorded / 2).await;
        rig.site.delete_queue(SEARCH).await.expect("deleted");
        for _ in 0..10 {
            rig.record(40, 2).await;
            recorded += 80;
        }
        let raised = format!(
            "select count(*) from ticketflow.effect_queues where effect = 'search' and generation > {deletion}"
        );
        rig.until(&raised, 1).await;
        rig.until(READY, 2).await;
    }
    rig.until_published(recorded).await;
    rig.until(READY, 2).await;
    let spent =
        "select count(*) from ticketflow.outbox_events where attempts > 0 or state = 'parked'";
    assert_eq!(rig.count(spent).await, 0, "nothing is any event's fault");
    relay.stop().await;

    let all = usize::try_from(recorded).expect("a count");
    let in_search = copies(&rig.wire(SEARCH).await);
    assert_eq!(in_search.len(), all, "the deleted queue has every event");
    let wire = rig.wire(NOTIFICATION).await;
    assert_first_arrivals_in_order(&wire);
    let in_notification = copies(&wire);
    assert_eq!(in_notification.len(), all, "so has the other");
    let copies: usize = in_notification.values().map(|count| count - 1).sum();
    let in_flight = 3 * 4 * 512;
    assert!(
        copies <= in_flight,
        "copies of what was in flight at most: {copies}"
    );
}
