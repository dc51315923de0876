//! `replay`.

use std::time::{Duration, Instant};

use crate::tool::Tool;

/// Waits until the broker counts so many messages; its counters follow after a moment.
async fn counts(tool: &Tool, queue: &str, messages: u64) {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let queues = tool.site.queues().await.unwrap();
        let found = queues.iter().find(|found| found.name == queue);
        if found.is_some_and(|found| found.ready == messages) {
            return;
        }
        assert!(
            Instant::now() < until,
            "{queue} has not {messages}: {queues:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_sends_what_was_published_in_a_time_to_one_queue_again() {
    let tool = Tool::on("replay").await;
    tool.json(&["topology"]).await;
    tool.json(&["tenant", "add", "acme"]).await;
    for number in 0..5 {
        let tenant = if number < 3 { "acme" } else { "default" };
        tool.record(tenant, &number.to_string()).await;
    }
    let publish = "update ticketflow.outbox_events set state = 'published', pool = 'shared', \
                   published_at = clock_timestamp()";
    tool.client.batch_execute(publish).await.unwrap();
    tool.record("acme", "not published").await;
    let replay = ["replay", "--effect", "search", "--from", "1h"];
    let with = |more: &[&'static str]| [&replay[..], more].concat();
    assert_eq!(tool.json(&with(&["--dry-run"])).await["events"], 5);
    counts(&tool, "ticketflow.shared.search", 0).await;
    assert_eq!(tool.json(&with(&["--tenant", "acme"])).await["events"], 3);
    counts(&tool, "ticketflow.shared.search", 3).await;
    counts(&tool, "ticketflow.shared.audit", 0).await;
    let receipt = "insert into ticketflow.effect_receipts (event_id, tenant_id, source, effect_name, digest) \
                   select event_id, tenant_id, source, 'search', sha256('x') \
                   from ticketflow.outbox_events where tenant_id = 'acme' and state = 'published'";
    tool.client.batch_execute(receipt).await.unwrap();
    assert_eq!(tool.json(&with(&["--missing"])).await["events"], 2);
    counts(&tool, "ticketflow.shared.search", 5).await;
    let before = ["--to", "2020-01-01T00:00:00Z"];
    assert_eq!(tool.json(&with(&before)).await["events"], 0);
    assert_eq!(tool.actions("replay").await.len(), 3);
    let told = tool
        .refused(3, &["replay", "--effect", "nobody", "--from", "1h"])
        .await;
    assert!(told.contains("pool shared has no effect nobody"), "{told}");
    tool.refused(2, &["replay", "--effect", "search", "--from", "yesterday"])
        .await;
}
