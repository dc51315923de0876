//! `status`, `lanes`, `held` and `doctor`.

use crate::tool::Tool;

const HOLD: &str = "insert into ticketflow.outbox_holds \
    (tenant_id, aggregate_type, aggregate_id, lane, head_position, until, reason) \
    select tenant_id, aggregate_type, aggregate_id, lane, position, null, 'unroutable' \
    from ticketflow.outbox_events where state = 'parked'";

#[tokio::test(flavor = "multi_thread")]
async fn status_and_lanes_tell_the_backlog() {
    let tool = Tool::on("status").await;
    for aggregate in ["a", "b", "c"] {
        tool.record("default", aggregate).await;
    }
    let delayed = "select ticketflow.record_event('default', 'ticket', 'd', 'ticket.updated', \
                   '{}'::text, available_at => clock_timestamp() + interval '1 hour')";
    tool.client.query(delayed, &[]).await.unwrap();
    let status = tool.json(&["status"]).await;
    assert_eq!(status["backlog"]["claimable"], 3);
    assert_eq!(status["backlog"]["delayed"], 1);
    assert!(status["backlog"]["oldest_due_seconds"].as_f64().unwrap() >= 0.0);
    assert_eq!(status["queues"].as_array().unwrap().len(), 3);
    let lanes = tool.json(&["lanes"]).await;
    let claimable: i64 = lanes
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|lane| lane["claimable"].as_i64())
        .sum();
    assert_eq!(claimable, 3);
    assert_eq!(
        tool.json(&["lanes", "--all", "--tenant", "default"])
            .await
            .as_array()
            .unwrap()
            .len(),
        16
    );
    let text = tool.run(&["status"]).await.stdout;
    assert!(text.contains("claimable           3"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_lists_aggregates_with_their_heads() {
    let tool = Tool::on("held").await;
    let head = tool.record("default", "a").await;
    let behind = tool.record("default", "a").await;
    let park =
        "update ticketflow.outbox_events set state = 'parked', held = true where event_id = $1";
    tool.client.execute(park, &[&head]).await.unwrap();
    tool.client.batch_execute(HOLD).await.unwrap();
    let wait = "update ticketflow.outbox_events set held = true where event_id = $1";
    tool.client.execute(wait, &[&behind]).await.unwrap();
    let held = tool.json(&["held"]).await;
    assert_eq!(held[0]["head_event"], head.to_string());
    assert_eq!(held[0]["head_state"], "parked");
    assert_eq!(held[0]["behind"], 1);
    assert_eq!(
        tool.json(&["held", "--tenant", "other"])
            .await
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_finds_what_is_wrong_and_ends_1() {
    let tool = Tool::on("doctor").await;
    let ready = "update ticketflow.effect_queues set declared_generation = generation, \
                 ready_generation = generation, verified_at = clock_timestamp()";
    tool.client.batch_execute(ready).await.unwrap();
    let ran = tool.run(&["doctor"]).await;
    assert!(
        ran.stdout
            .contains("queue ticketflow.shared.audit is missing")
            && ran
                .stdout
                .contains("queue ticketflow.shared.dead is missing"),
        "{ran:?}"
    );
    tool.json(&["topology"]).await;
    let well = tool.json(&["doctor"]).await;
    assert_eq!(well["problems"], 0, "{well}");
    assert!(
        well.to_string()
            .contains("nobody consumes ticketflow.shared.search"),
        "{well}"
    );
    let lost = tool.record("default", "a").await;
    let wrong = "update ticketflow.outbox_events set held = true where event_id = $1";
    tool.client.execute(wrong, &[&lost]).await.unwrap();
    let old = "update ticketflow.effect_queues set generation = generation + 1, \
               generation_at = clock_timestamp() - interval '5 minutes' where effect = 'audit'";
    tool.client.batch_execute(old).await.unwrap();
    tool.client
        .batch_execute("insert into ticketflow.tenants values ('lonely', 'empty')")
        .await
        .unwrap();
    tool.client
        .batch_execute(
            "delete from ticketflow.outbox_lanes where tenant_id = 'lonely' and lane = 3",
        )
        .await
        .unwrap();
    tool.json(&["topology", "--pool", "slip"]).await;
    let ran = tool.run(&["doctor"]).await;
    assert_eq!(ran.status, 1, "{ran:?}");
    for wanted in [
        "no tenant is in pool slip",
        "pool remove slip",
        "are held without a hold",
        "queue ticketflow.shared.audit is not ready",
        "pool empty has tenants but no effects",
        "tenant lonely has 15 lanes",
        "found 4 problems, ",
    ] {
        assert!(
            ran.stdout.contains(wanted),
            "{wanted} is not in\n{}",
            ran.stdout
        );
    }
    let ran = tool.run(&["doctor", "--repair"]).await;
    assert!(!ran.stdout.contains("held without a hold"), "{ran:?}");
    let due = "select count(*) from ticketflow.outbox_holds where until <= clock_timestamp()";
    assert_eq!(tool.number(due).await, 1);
    assert_eq!(tool.actions("doctor repair").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_tells_an_old_due_event_but_not_a_paused_or_delayed_one() {
    let tool = Tool::on("doctor_due").await;
    tool.client
        .batch_execute(
            "update ticketflow.effect_queues set ready_generation = 1, declared_generation = 1",
        )
        .await
        .unwrap();
    tool.json(&["topology"]).await;
    tool.record("default", "a").await;
    let ran = tool.run(&["doctor", "--due-age", "0s"]).await;
    assert!(
        ran.status == 1 && ran.stdout.contains("the oldest due event of pool shared"),
        "{ran:?}"
    );
    tool.json(&["tenant", "pause", "default"]).await;
    let ran = tool.run(&["doctor", "--due-age", "0s"]).await;
    assert!(
        ran.status == 0 && ran.stdout.contains("tenant default is paused"),
        "{ran:?}"
    );
}
