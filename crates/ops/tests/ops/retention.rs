//! `retention`.

use crate::tool::Tool;

async fn partition(tool: &Tool, parent: &str, days_ago: i32) -> String {
    let text = "select ticketflow.make_partition($1::text, (clock_timestamp() at time zone 'UTC')::date - $2::int4), \
                ticketflow.partition_name($1::text, (clock_timestamp() at time zone 'UTC')::date - $2::int4)";
    tool.client
        .query_one(text, &[&parent, &days_ago])
        .await
        .unwrap()
        .get(1)
}

async fn exists(tool: &Tool, name: &str) -> bool {
    let text = "select to_regclass('ticketflow.' || $1::text) is not null";
    tool.client.query_one(text, &[&name]).await.unwrap().get(0)
}

async fn old_event(tool: &Tool, days_ago: i32, state: &str) {
    let text = "insert into ticketflow.outbox_events (event_id, position, tenant_id, source, aggregate_type,
        aggregate_id, version, previous_version, lane, event_type, content_type, payload, state, published_at)
      values (ticketflow.uuid_v7_floor(clock_timestamp() - make_interval(days => $1)),
        nextval('ticketflow.outbox_position'), 'default', 'ticketflow', 'ticket', $2::text, 1, 0, 0,
        'ticket.updated', 'application/json', '', $2::text,
        case when $2::text = 'published' then clock_timestamp() end)";
    tool.client
        .execute(text, &[&days_ago, &state])
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn old_days_go_unless_something_in_them_still_waits() {
    let tool = Tool::on("retention").await;
    let gone = partition(&tool, "outbox_events", 20).await;
    let kept = partition(&tool, "outbox_events", 21).await;
    let young = partition(&tool, "outbox_events", 5).await;
    old_event(&tool, 20, "published").await;
    old_event(&tool, 21, "published").await;
    old_event(&tool, 21, "pending").await;
    old_event(&tool, 5, "published").await;
    let plan = tool.json(&["retention", "--dry-run"]).await;
    assert_eq!(plan.as_array().unwrap().len(), 2, "{plan}");
    assert!(exists(&tool, &gone).await);
    let done = tool.json(&["retention"]).await;
    assert_eq!(done["emptied"].as_array().unwrap().len(), 1, "{done}");
    assert_eq!(
        done["kept_since_something_waits"].as_array().unwrap().len(),
        1,
        "{done}"
    );
    assert!(!exists(&tool, &gone).await);
    assert!(exists(&tool, &kept).await && exists(&tool, &young).await);
    assert_eq!(
        tool.number("select count(*) from ticketflow.outbox_events")
            .await,
        3
    );
    assert_eq!(tool.actions("retention").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_day_without_a_partition_get_one() {
    let tool = Tool::on("retention_default").await;
    old_event(&tool, 9, "published").await;
    let in_default = "select count(*) from ticketflow.outbox_events_default";
    assert_eq!(tool.number(in_default).await, 1);
    let ran = tool.run(&["doctor"]).await;
    assert!(ran.stdout.contains("in the default partition"), "{ran:?}");
    tool.json(&["retention"]).await;
    assert_eq!(tool.number(in_default).await, 0);
    assert_eq!(
        tool.number("select count(*) from ticketflow.outbox_events")
            .await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_go_behind_the_floor_and_the_window_must_be_long_enough() {
    let tool = Tool::on("retention_receipts").await;
    let old = partition(&tool, "effect_receipts", 40).await;
    for days in [40, 50, 3] {
        let text = "insert into ticketflow.effect_receipts (event_id, tenant_id, source, effect_name, digest) \
                    values (ticketflow.uuid_v7_floor(clock_timestamp() - make_interval(days => $1)), \
                    'default', 'ticketflow', 'search', sha256('x'))";
        tool.client.execute(text, &[&days]).await.unwrap();
    }
    let told = tool
        .refused(1, &["retention", "--dedup-window", "29d"])
        .await;
    assert!(
        told.contains("dedup_window") && told.contains("applied twice"),
        "{told}"
    );
    assert_eq!(
        tool.number("select count(*) from ticketflow.effect_receipts")
            .await,
        3
    );
    tool.json(&["retention"]).await;
    assert!(!exists(&tool, &old).await);
    // The one of 50 days ago was in the default partition.
    assert_eq!(
        tool.number("select count(*) from ticketflow.effect_receipts")
            .await,
        1
    );
    let floor = "select count(*) from ticketflow.receipt_floor where truncated = floor \
                 and floor > ticketflow.uuid_v7_floor(clock_timestamp() - interval '37 days') \
                 and floor <= ticketflow.uuid_v7_floor(clock_timestamp() - interval '35 days')";
    assert_eq!(tool.number(floor).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_waits_in_short_tries_for_whoever_uses_a_partition() {
    let tool = Tool::on("retention_busy").await;
    let gone = partition(&tool, "outbox_events", 20).await;
    old_event(&tool, 20, "published").await;
    let reader = tool.site.database().await.unwrap();
    reader
        .batch_execute("begin; select count(*) from ticketflow.outbox_events")
        .await
        .unwrap();
    let waiting = tool.run(&["retention"]);
    let finish = async {
        // A producer in between is not made to wait for the reader.
        let id = tool.record("default", "a").await;
        assert!(!id.is_nil());
        reader.batch_execute("commit").await.unwrap();
    };
    let (ran, ()) = tokio::join!(waiting, finish);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(!exists(&tool, &gone).await);
}
