//! `event` and `tail`.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use uuid::Uuid;

use crate::tool::Tool;

#[tokio::test(flavor = "multi_thread")]
async fn event_tells_where_an_event_is() {
    let tool = Tool::on("event").await;
    let id = tool.record("default", "a").await;
    let text = id.to_string();
    let place = async || {
        let shown = tool.json(&["event", &text]).await;
        shown["place"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        place().await,
        "pending: to be claimed by a relay of its pool"
    );
    let lease = "update ticketflow.outbox_lanes set lease_token = gen_random_uuid(), \
                 leased_by = 'relay-1', leased_until = clock_timestamp() + interval '1 hour'";
    tool.client.batch_execute(lease).await.unwrap();
    assert_eq!(place().await, "pending: its lane is leased by relay-1");
    tool.json(&["tenant", "pause", "default"]).await;
    assert_eq!(place().await, "pending: its tenant is paused");
    let published = "update ticketflow.outbox_events set state = 'published', pool = 'shared', \
                     published_at = clock_timestamp() where event_id = $1";
    tool.client.execute(published, &[&id]).await.unwrap();
    assert!(place().await.starts_with("published to pool shared at "));
    let receipt = "insert into ticketflow.effect_receipts (event_id, tenant_id, source, effect_name, digest) \
                   values ($1, 'default', 'ticketflow', 'search', sha256('x'))";
    tool.client.execute(receipt, &[&id]).await.unwrap();
    let shown = tool.json(&["event", &text]).await;
    assert_eq!(shown["effects"][0]["effect"], "search");
    assert_eq!(shown["effects"][0]["state"], "applied");
    let told = tool
        .refused(3, &["event", &Uuid::now_v7().to_string()])
        .await;
    assert!(told.contains("is in no table"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tail_shows_what_is_there_and_what_comes_also_when_it_commits_late() {
    let tool = Tool::on("tail").await;
    let first = tool.record("default", "a").await.to_string();
    let once = tool.run(&["tail", "--once", "--json"]).await;
    assert!(once.stdout.contains(&first), "{once:?}");
    // Recorded before, committed after the next one.
    let late = tool.site.database().await.unwrap();
    late.batch_execute("begin").await.unwrap();
    let text = "select ticketflow.record_event('default', 'ticket', 'late', 'ticket.updated', '{}'::text)::text";
    let late_id: String = late.query_one(text, &[]).await.unwrap().get(0);
    let mut child = Command::new(env!("CARGO_BIN_EXE_ticketflow"))
        .args(["tail", "--json"])
        .envs(tool.environment())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = tokio::time::timeout(Duration::from_secs(30), lines.next_line());
        line.await
            .expect("a line in time")
            .unwrap()
            .expect("a line")
    };
    assert!(next().await.contains(&first));
    let second = tool.record("default", "b").await.to_string();
    assert!(next().await.contains(&second));
    late.batch_execute("commit").await.unwrap();
    assert!(next().await.contains(&late_id));
}
