//! k07 to k16 and k18: what the consumer promises, through real servers.

use uuid::Uuid;

use crate::consuming::{Stage, ticket_event};

const RECEIPTS: &str = "select count(*) from ticketflow.effect_receipts";

#[tokio::test(flavor = "multi_thread")]
async fn k18_through_real_servers() {
    let stage = Stage::new("k18").await;
    let ticket = Uuid::now_v7();
    stage.ticket("acme", ticket).await;
    let event = ticket_event("acme", ticket, 1);
    stage.publish([&event, &event]).await;
    let consumer = stage.consumer(&[]).await;
    consumer.until_ready(true).await;
    stage.until(RECEIPTS, 3).await;
    stage.until_empty().await;
    let (_, metrics) = consumer.get("/metrics").await;
    for effect in ["notification", "search", "audit"] {
        for (outcome, count) in [("applied", 1), ("duplicate", 1)] {
            let line = format!(
                "consumer_deliveries_total{{effect=\"{effect}\",outcome=\"{outcome}\"}} {count}"
            );
            assert!(metrics.contains(&line), "{line} is not in {metrics}");
        }
    }
    consumer.stop().await;
    assert_eq!(stage.count(RECEIPTS).await, 3);
    assert_eq!(
        stage
            .count("select count(*) from ticketflow.business_tasks")
            .await,
        1
    );
    assert_eq!(
        stage
            .count("select count(*) from ticketflow.search_documents")
            .await,
        1
    );
    assert_eq!(
        stage
            .count("select count(*) from ticketflow.audit_entries")
            .await,
        1
    );
    assert_eq!(
        stage
            .count("select count(*) from ticketflow.consumer_marks")
            .await,
        0
    );
}
