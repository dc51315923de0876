//! `parked`, `redrive` and `skip`.

use std::process::Stdio;

use tokio::process::Command;
use uuid::Uuid;

use crate::tool::Tool;

/// Parks an event as a relay does.
async fn park(tool: &Tool, id: Uuid, reason: &str) {
    let text = "with parked as (
        update ticketflow.outbox_events set state = 'parked', held = true, attempts = 3,
          first_refused_at = clock_timestamp(), last_error = $2
        where event_id = $1
        returning tenant_id, aggregate_type, aggregate_id, lane, position
      )
      insert into ticketflow.outbox_holds
        (tenant_id, aggregate_type, aggregate_id, lane, head_position, until, reason)
      select tenant_id, aggregate_type, aggregate_id, lane, position, null, $2 from parked
      on conflict do nothing";
    tool.client.execute(text, &[&id, &reason]).await.unwrap();
}

async fn hold(tool: &Tool, id: Uuid) {
    let text = "update ticketflow.outbox_events set held = true where event_id = $1";
    tool.client.execute(text, &[&id]).await.unwrap();
}

/// State and whether it is held.
async fn state(tool: &Tool, id: Uuid) -> (String, bool) {
    let text = "select state, held from ticketflow.outbox_events where event_id = $1";
    let row = tool.client.query_one(text, &[&id]).await.unwrap();
    (row.get(0), row.get(1))
}

fn pair(state: &str, held: bool) -> (String, bool) {
    (state.to_owned(), held)
}

/// A parked delivery of the audit effect, which keeps order.
async fn park_delivery(tool: &Tool, version: i64, applicable: bool) -> i64 {
    let text = "insert into ticketflow.deferred_deliveries
        (state, effect_name, pool, tenant_id, source, event_id, digest, aggregate_type, aggregate_id,
         version, previous_version, event_type, reason, detail, applicable, attempts, routing_key,
         properties, body)
      values ('parked', 'audit', 'shared', 'default', 'ticketflow', ticketflow.uuid_v7(),
        sha256(int8send($1)), 'ticket', 'a', $1, $1 - 1, 'ticket.updated', 'attempts', 'no luck',
        $2, 20, 'shared.00.default.ticket.updated', '{}', '\\x00ff')
      returning delivery_id";
    tool.client
        .query_one(text, &[&version, &applicable])
        .await
        .unwrap()
        .get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redriven_head_is_due_again_and_keeps_its_id_and_its_place() {
    let tool = Tool::on("redrive_head").await;
    let [head, behind] = [
        tool.record("default", "a").await,
        tool.record("default", "a").await,
    ];
    park(&tool, head, "nobody takes it").await;
    hold(&tool, behind).await;
    let listed = tool.json(&["parked", "list"]).await;
    assert_eq!(listed[0]["id"], head.to_string());
    assert_eq!(listed[0]["reason"], "nobody takes it");
    let dry = tool
        .json(&["redrive", &head.to_string(), "--dry-run"])
        .await;
    assert_eq!(dry["redriven"], 1);
    assert_eq!(state(&tool, head).await, pair("parked", true));
    let done = tool
        .json(&[
            "redrive",
            &head.to_string(),
            "--because",
            "bound now",
            "--stagger",
            "0s",
        ])
        .await;
    assert_eq!(done["events"][0], head.to_string());
    // Held until its due hold is walked, so that its successor stays behind it.
    assert_eq!(state(&tool, head).await, pair("pending", true));
    assert_eq!(state(&tool, behind).await, pair("pending", true));
    let due = "select count(*) from ticketflow.outbox_holds where until <= clock_timestamp()";
    assert_eq!(tool.number(due).await, 1);
    let spent = "select attempts from ticketflow.outbox_events where held and version = 1";
    assert_eq!(tool.number(spent).await, 0);
    let noted = tool.actions("redrive").await;
    assert_eq!((noted.len(), noted[0].1.as_str()), (1, "bound now"));
    let told = tool.refused(3, &["redrive", &head.to_string()]).await;
    assert!(told.contains("none of these is parked"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn redrive_is_chosen_by_tenant_and_reason_bounded_and_staggered() {
    let tool = Tool::on("redrive_many").await;
    tool.json(&["tenant", "add", "acme"]).await;
    for number in 0..6 {
        let tenant = if number < 4 { "acme" } else { "default" };
        let id = tool.record(tenant, &number.to_string()).await;
        let reason = if number == 0 {
            "too large"
        } else {
            "nobody takes it"
        };
        park(&tool, id, reason).await;
    }
    let told = tool.refused(2, &["redrive"]).await;
    assert!(told.contains("say what"), "{told}");
    let none = tool
        .json(&["redrive", "--tenant", "acme", "--older-than", "1h"])
        .await;
    assert_eq!(none["redriven"], 0);
    let chosen = [
        "redrive",
        "--tenant",
        "acme",
        "--reason",
        "nobody",
        "--limit",
        "2",
        "--stagger",
        "100s",
    ];
    assert_eq!(tool.json(&chosen).await["redriven"], 2);
    let spread = "select round(extract(epoch from max(until) - min(until)))::bigint \
                  from ticketflow.outbox_holds where until is not null";
    assert_eq!(tool.number(spread).await, 50);
    assert_eq!(tool.json(&chosen).await["redriven"], 1);
    assert_eq!(tool.json(&["redrive", "--all"]).await["redriven"], 3);
    let parked = "select count(*) from ticketflow.outbox_events where state = 'parked'";
    assert_eq!(tool.number(parked).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_redrives_at_once_do_it_once() {
    let tool = Tool::on("redrive_twice").await;
    for number in 0..50 {
        let id = tool.record("default", &number.to_string()).await;
        park(&tool, id, "x").await;
    }
    for version in 1..=20 {
        park_delivery(&tool, version, true).await;
    }
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_ticketflow"))
            .args(["redrive", "--all", "--json"])
            .envs(tool.environment())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .output()
    };
    let (one, other) = tokio::join!(start(), start());
    let redriven = [one, other].map(|output| {
        let output = output.unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        json["redriven"].as_i64().unwrap()
    });
    assert_eq!(redriven[0] + redriven[1], 70, "{redriven:?}");
    let noted =
        "select sum((result->>'redriven')::bigint)::bigint from ticketflow.operator_actions";
    assert_eq!(tool.number(noted).await, 70);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skipped_head_lets_the_next_ones_go() {
    let tool = Tool::on("skip_head").await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(tool.record("default", "a").await);
    }
    park(&tool, ids[0], "too large").await;
    hold(&tool, ids[1]).await;
    park(&tool, ids[2], "too large as well").await;
    let told = tool.refused(2, &["skip", &ids[0].to_string()]).await;
    assert!(told.contains("--because"), "{told}");
    tool.json(&["skip", &ids[0].to_string(), "--because", "a test"])
        .await;
    assert_eq!(state(&tool, ids[0]).await, pair("skipped", false));
    assert_eq!(state(&tool, ids[1]).await, pair("pending", false));
    assert_eq!(state(&tool, ids[2]).await, pair("parked", true));
    let told = tool
        .refused(1, &["skip", &ids[1].to_string(), "--because", "x"])
        .await;
    assert!(told.contains("neither parked nor refused"), "{told}");
    // One that is not the head is only marked: the head is still to come.
    tool.json(&["skip", &ids[2].to_string(), "--because", "a test"])
        .await;
    assert_eq!(state(&tool, ids[1]).await, pair("pending", false));
    let noted = tool.actions("skip").await;
    assert_eq!((noted.len(), noted[0].1.as_str()), (2, "a test"));
    tool.refused(3, &["skip", &Uuid::now_v7().to_string(), "--because", "x"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_delivery_is_shown_with_its_exact_bytes_and_redriven() {
    let tool = Tool::on("delivery").await;
    let delivery = park_delivery(&tool, 1, true).await;
    let number = delivery.to_string();
    let shown = tool.json(&["parked", "show", &number]).await;
    assert_eq!(shown["delivery"]["reason"], "attempts");
    assert_eq!(shown["delivery"]["body"], "2 bytes that are not text");
    let body = Command::new(env!("CARGO_BIN_EXE_ticketflow"))
        .args(["parked", "show", &number, "--body"])
        .envs(tool.environment())
        .output()
        .await
        .unwrap();
    assert_eq!(body.stdout, [0x00, 0xff]);
    let evidence = park_delivery(&tool, 7, false).await;
    let done = tool.json(&["redrive", "--effect", "audit"]).await;
    assert_eq!(done["deliveries"], serde_json::json!([delivery]));
    let due = "select count(*) from ticketflow.deferred_deliveries where state = 'deferred' \
               and attempts = 0 and next_attempt_at is not null";
    assert_eq!(tool.number(due).await, 1);
    let told = tool.refused(3, &["redrive", &evidence.to_string()]).await;
    assert!(told.contains("none of these"), "{told}");
    tool.refused(3, &["parked", "show", "999"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skipped_delivery_leaves_a_receipt_moves_the_head_and_wakes_the_next() {
    let tool = Tool::on("skip_delivery").await;
    let head = "insert into ticketflow.effect_heads (effect_name, tenant_id, aggregate_type, aggregate_id) \
                values ('audit', 'default', 'ticket', 'a')";
    tool.client.batch_execute(head).await.unwrap();
    let first = park_delivery(&tool, 1, true).await;
    let second = park_delivery(&tool, 2, true).await;
    let wait = "update ticketflow.deferred_deliveries set state = 'waiting', \
                next_attempt_at = clock_timestamp() + interval '1 hour' where delivery_id = $1";
    tool.client.execute(wait, &[&second]).await.unwrap();
    tool.json(&["skip", &first.to_string(), "--because", "broken"])
        .await;
    let receipts = "select count(*) from ticketflow.effect_receipts where skipped";
    assert_eq!(tool.number(receipts).await, 1);
    assert_eq!(
        tool.number("select version from ticketflow.effect_heads")
            .await,
        1
    );
    let due = "select count(*) from ticketflow.deferred_deliveries where next_attempt_at <= clock_timestamp()";
    assert_eq!(tool.number(due).await, 1);
    tool.refused(
        3,
        &["skip", &second.to_string(), "--because", "it is not parked"],
    )
    .await;
    tool.refused(3, &["skip", &first.to_string(), "--because", "again"])
        .await;
    let evidence = park_delivery(&tool, 9, false).await;
    let dropped = tool
        .json(&["skip", &evidence.to_string(), "--because", "seen"])
        .await;
    assert_eq!(dropped["result"], "dropped");
    assert_eq!(tool.number(receipts).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outside_task_is_listed_redriven_and_skipped() {
    let tool = Tool::on("task").await;
    let ticket = "with t as (
        insert into ticketflow.tickets (tenant_id, ticket_id, version, subject)
        values ('default', gen_random_uuid(), 1, 'x') returning ticket_id)
      insert into ticketflow.business_tasks (task_id, tenant_id, ticket_id, event_id, source, task_type,
        status, parked_reason, last_error)
      select gen_random_uuid(), 'default', ticket_id, ticketflow.uuid_v7(), 'ticketflow',
        'ticket.updated', 'parked', 'refused', '410'
      from t returning task_id";
    let id: Uuid = tool.client.query_one(ticket, &[]).await.unwrap().get(0);
    let listed = tool.json(&["parked", "list", "--kind", "task"]).await;
    assert_eq!(listed[0]["id"], id.to_string());
    let done = tool.json(&["redrive", &id.to_string()]).await;
    assert_eq!(done["tasks"][0], id.to_string());
    let again = "update ticketflow.business_tasks set status = 'parked', parked_reason = 'refused'";
    tool.client.batch_execute(again).await.unwrap();
    tool.json(&["skip", &id.to_string(), "--because", "gone"])
        .await;
    let skipped = "select count(*) from ticketflow.business_tasks where status = 'skipped'";
    assert_eq!(tool.number(skipped).await, 1);
}
