//! `tenant` and `effect`.

use serde_json::{Value, json};

use crate::tool::Tool;

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_added_once_with_lanes_and_the_effects_of_its_pool() {
    let tool = Tool::on("tenant_add").await;
    let added = tool
        .json(&["tenant", "add", "acme", "--pool", "big", "--rate", "5"])
        .await;
    assert_eq!(
        added,
        json!({"tenant": "acme", "pool": "big", "added": true, "new_pool": true})
    );
    let lanes = "select count(*) from ticketflow.outbox_lanes where tenant_id = 'acme'";
    assert_eq!(tool.number(lanes).await, 16);
    let effects = tool.json(&["effect", "list"]).await;
    let of_big = |effect: &&Value| effect["pool"] == "big";
    assert_eq!(effects.as_array().unwrap().iter().filter(of_big).count(), 3);
    let told = tool.refused(1, &["tenant", "add", "acme"]).await;
    assert!(told.contains("there already, in pool big"), "{told}");
    let again = tool
        .json(&["tenant", "add", "acme", "--pool", "big", "--if-missing"])
        .await;
    assert_eq!(again["added"], false);
    tool.refused(1, &["tenant", "add", "acme", "--if-missing"])
        .await;
    let listed = tool.json(&["tenant", "list"]).await;
    assert_eq!(listed[0]["tenant"], "acme");
    assert_eq!(listed[0]["rate_per_second"], 5);
    let shown = tool.json(&["tenant", "show", "acme"]).await;
    assert_eq!(shown["tenant"]["pool"], "big");
    assert_eq!(tool.actions("tenant add").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_could_misroute_are_refused_and_unknown_ones_told() {
    let tool = Tool::on("tenant_ids").await;
    for id in ["", "a.b", "#", "A", "..", "a\nb", &"a".repeat(64)] {
        let told = tool.refused(2, &["tenant", "add", id]).await;
        assert!(told.contains("tenant id"), "{told}");
    }
    let told = tool
        .refused(2, &["tenant", "add", "acme", "--pool", "dead"])
        .await;
    assert!(told.contains("pool"), "{told}");
    for command in ["show", "pause", "resume", "key"] {
        let told = tool.refused(3, &["tenant", command, "nobody"]).await;
        assert!(told.contains("there is no tenant nobody"), "{told}");
    }
    assert_eq!(
        tool.number("select count(*) from ticketflow.operator_actions")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_paused_and_resumed_with_a_reason() {
    let tool = Tool::on("tenant_pause").await;
    let told = tool
        .json(&["tenant", "pause", "default", "--because", "bad import"])
        .await;
    assert_eq!(
        told,
        json!({"tenant": "default", "state": "paused", "before": "active"})
    );
    let state = "select count(*) from ticketflow.tenants where state = 'paused'";
    assert_eq!(tool.number(state).await, 1);
    tool.json(&["tenant", "resume", "default"]).await;
    assert_eq!(tool.number(state).await, 0);
    let paused = tool.actions("tenant pause").await;
    assert_eq!(paused[0].1, "bad import");
    assert_eq!(tool.actions("tenant resume").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_and_two_live_ones_are_enough() {
    let tool = Tool::on("tenant_key").await;
    let ran = tool.run(&["tenant", "key", "default"]).await;
    let first = ran.stdout.trim_end().to_owned();
    assert!(
        first.starts_with("tfk_") && first.len() > 40 && !first.contains('\n'),
        "{ran:?}"
    );
    let known = "select count(*) from ticketflow.tenant_of_key(sha256(convert_to($1, 'UTF8')))";
    let is_known = async |key: &str| {
        let row = tool.client.query_one(known, &[&key]).await.unwrap();
        row.get::<_, i64>(0) == 1
    };
    assert!(is_known(&first).await);
    let second = tool
        .json(&["tenant", "key", "default", "--label", "new"])
        .await;
    let told = tool.refused(1, &["tenant", "key", "default"]).await;
    assert!(told.contains("2 live keys"), "{told}");
    tool.json(&["tenant", "key", "default", "--revoke", &first])
        .await;
    assert!(!is_known(&first).await);
    assert!(is_known(second["key"].as_str().unwrap()).await);
    let id = second["key_id"].as_str().unwrap();
    tool.json(&["tenant", "key", "default", "--expire", id, "--after", "0s"])
        .await;
    assert!(!is_known(second["key"].as_str().unwrap()).await);
    let listed = tool.json(&["tenant", "key", "default", "--list"]).await;
    assert_eq!(listed[0]["state"], "revoked");
    assert_eq!(listed[1]["state"], "expired");
    tool.refused(3, &["tenant", "key", "default", "--revoke", id])
        .await;
    tool.json(&["tenant", "key", "default", "--after", "1h"])
        .await;
    let text = "select count(*) from ticketflow.operator_actions where action like 'tenant key%' \
                and target::text not like '%tfk_%'";
    assert_eq!(tool.number(text).await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_is_added_paused_and_resumed() {
    let tool = Tool::on("effect").await;
    let added = tool
        .json(&[
            "effect",
            "add",
            "mail",
            "--types",
            "ticket.created,ticket.#",
        ])
        .await;
    assert_eq!(added["event_types"], json!(["ticket.created", "ticket.#"]));
    tool.refused(1, &["effect", "add", "mail", "--types", "#"])
        .await;
    tool.refused(2, &["effect", "add", "other", "--types", "Ticket..x"])
        .await;
    tool.json(&["effect", "pause", "mail"]).await;
    let paused = "select count(*) from ticketflow.effect_queues where paused";
    assert_eq!(tool.number(paused).await, 1);
    tool.json(&["effect", "resume", "mail", "--pool", "shared"])
        .await;
    assert_eq!(tool.number(paused).await, 0);
    let told = tool
        .refused(3, &["effect", "pause", "mail", "--pool", "big"])
        .await;
    assert!(
        told.contains("pool big does not have effect mail"),
        "{told}"
    );
    assert_eq!(tool.actions("effect pause").await.len(), 1);
}
