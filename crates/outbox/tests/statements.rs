//! Every statement is valid on the migrated tables, and the claim's plan uses its index.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::path::Path;

#[tokio::test]
async fn every_file_prepares() {
    let sandbox = sandbox::shared().await.expect("servers");
    let site = sandbox.site("statements").await.expect("a site");
    let database = site.database().await.expect("a session");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sql");
    let mut count = 0;
    for entry in folder.read_dir().expect("the folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("text");
        database
            .prepare(&text)
            .await
            .unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        count += 1;
    }
    assert!(count >= 20, "only {count} statements found");
}

#[tokio::test]
async fn the_claim_reads_by_its_index_whatever_the_statistics_say() {
    let sandbox = sandbox::shared().await.expect("servers");
    let site = sandbox.site("plans").await.expect("a site");
    let database = site.database().await.expect("a session");
    database
        .batch_execute(&include_str!("../src/sql/set_up.sql").replace("true)", "false)"))
        .await
        .expect("set, for the session instead of a transaction");
    let values = [
        (
            "walk",
            include_str!("../src/sql/walk.sql"),
            "'{shared}', '', -1::smallint, 100, 100, ticketflow.uuid_v7()",
        ),
        (
            "read",
            include_str!("../src/sql/read.sql"),
            "'{default}', '{1}', '{shared}', 10, 512, 8388608, ticketflow.uuid_v7()",
        ),
        (
            "mark_held",
            include_str!("../src/sql/mark_held.sql"),
            "'{default}', '{1}'",
        ),
    ];
    // On fresh tables, and on some that were analyzed while they were empty: the worst advice.
    for analyze in ["", "analyze"] {
        database.batch_execute(analyze).await.expect("analyzed");
        for (name, text, values) in values {
            database
                .batch_execute(&format!("prepare {name} as {text}"))
                .await
                .expect("prepared");
            let plan = database
                .query(&format!("explain execute {name}({values})"), &[])
                .await
                .expect("a plan");
            let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
            let plan = plan.join("\n");
            assert!(
                plan.contains("_tenant_id_lane_position_idx"),
                "{name}:\n{plan}"
            );
            assert!(
                !plan.contains("Seq Scan on outbox_events"),
                "{name}:\n{plan}"
            );
            database
                .batch_execute(&format!("deallocate {name}"))
                .await
                .expect("deallocated");
        }
    }
}

/// What the reads answer, by place.
const COLUMNS: &str = "event_id position tenant_id source aggregate_type aggregate_id version \
    previous_version lane event_type content_type payload headers trace_context occurred_at \
    place pool has_holds is_blocked attempts age refused_for";

#[tokio::test]
async fn columns_are_where_they_are_read() {
    let sandbox = sandbox::shared().await.expect("servers");
    let site = sandbox.site("columns").await.expect("a site");
    let database = site.database().await.expect("a session");
    for text in [
        include_str!("../src/sql/read.sql"),
        include_str!("../src/sql/read_one.sql"),
    ] {
        let statement = database.prepare(text).await.expect("prepared");
        let names = statement.columns().iter().map(|column| column.name());
        assert_eq!(names.collect::<Vec<_>>().join(" "), COLUMNS);
    }
}
