//! What was committed arrives: once without a fault, whatever is committed when.

use crate::relaying::{Rig, assert_first_arrivals_in_order};

#[tokio::test]
async fn what_is_recorded_is_published_once_and_in_order() {
    let rig = Rig::start("published").await;
    rig.queue("tap", &["ticket.#"]).await;
    rig.record(50, 20).await;
    let relay = rig.relay(&[]);
    rig.until_published(1000).await;
    relay.stop().await;
    let events = rig.wire("ticketflow.shared.tap").await;
    assert_eq!(events.len(), 1000);
    assert_first_arrivals_in_order(&events);
    assert_eq!(
        rig.count("select count(*) from ticketflow.outbox_lanes where lease_token is not null")
            .await,
        0
    );
    assert_eq!(
        rig.count(
            "select count(*) from ticketflow.outbox_events where attempts > 0 or pool <> 'shared'"
        )
        .await,
        0
    );
}
