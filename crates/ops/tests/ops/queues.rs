//! `topology`: declares, checks, and says what is wrong in clear words.

use serde_json::Value;

use crate::tool::Tool;

fn standings(report: &Value) -> Vec<(&str, &str)> {
    let rows = report.as_array().expect("rows").iter();
    rows.map(|row| {
        let column = |name: &str| row[name].as_str().expect("text");
        (column("queue"), column("standing"))
    })
    .collect()
}

const ALL: [(&str, &str); 3] = [
    ("ticketflow.shared.audit", "ready"),
    ("ticketflow.shared.notification", "ready"),
    ("ticketflow.shared.search", "ready"),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_queues_that_must_exist_are_declared_and_a_check_changes_nothing() {
    let tool = Tool::on("topology").await;
    let check = ["topology", "--check"];
    let ran = tool.run(&check).await;
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stdout.contains("missing"), "{ran:?}");
    assert_eq!(tool.site.queues().await.unwrap().len(), 0);

    assert_eq!(standings(&tool.json(&["topology"]).await), ALL);
    assert_eq!(standings(&tool.json(&check).await), ALL);
    assert_eq!(tool.actions("topology").await.len(), 1);

    tool.site
        .delete_queue("ticketflow.shared.search")
        .await
        .unwrap();
    let ran = tool.run(&check).await;
    assert_eq!(ran.status, 1, "{ran:?}");
    assert_eq!(standings(&tool.json(&["topology"]).await), ALL);
    let generation = "select generation from ticketflow.effect_queues where effect = 'search'";
    assert_eq!(tool.number(generation).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_is_made_like_another() {
    let tool = Tool::on("likeanother").await;
    tool.json(&[
        "effect", "add", "webhook", "--pool", "small", "--types", "ticket.#",
    ])
    .await;
    let made = tool
        .json(&["topology", "--pool", "acme", "--like", "small"])
        .await;
    assert_eq!(standings(&made), [("ticketflow.acme.webhook", "ready")]);
    let made = tool.json(&["topology", "--pool", "other"]).await;
    assert_eq!(made.as_array().expect("rows").len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_made_otherwise_is_told_with_the_argument_that_differs() {
    let tool = Tool::on("madeotherwise").await;
    let declare = format!(
        "rabbit_amqqueue:declare(rabbit_misc:r(<<\"{}\">>, queue, <<\"ticketflow.shared.search\">>), \
         true, false, [], none, <<\"test\">>), \"\"",
        tool.site.name
    );
    tool.site.sandbox().evaluate(&declare).await.unwrap();
    let told = tool.refused(1, &["topology"]).await;
    assert!(
        told.contains("ticketflow.shared.search exists with other arguments"),
        "{told}"
    );
    assert!(told.contains("inequivalent arg"), "{told}");
}
