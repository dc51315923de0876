//! `tenant move`.

use crate::tool::Tool;

async fn ready(tool: &Tool) {
    let text = "update ticketflow.effect_queues set declared_generation = generation, \
                ready_generation = generation";
    tool.client.batch_execute(text).await.unwrap();
}

async fn pool(tool: &Tool) -> String {
    let text = "select pool::text from ticketflow.tenants where tenant_id = 'acme'";
    tool.client.query_one(text, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_moves_when_no_relay_holds_a_lane_of_it() {
    let tool = Tool::on("move").await;
    tool.json(&["tenant", "add", "acme"]).await;
    tool.json(&["tenant", "add", "other", "--pool", "big"])
        .await;
    let told = tool
        .refused(1, &["tenant", "move", "acme", "--pool", "big"])
        .await;
    assert!(told.contains("is not ready"), "{told}");
    ready(&tool).await;
    let told = tool
        .refused(
            1,
            &["tenant", "move", "acme", "--pool", "big", "--within", "1s"],
        )
        .await;
    assert!(told.contains("nobody consumes ticketflow.big."), "{told}");
    let lease = "update ticketflow.outbox_lanes set lease_token = gen_random_uuid(), leased_by = 'relay', \
                 leased_until = clock_timestamp() + make_interval(secs => $1), unsettled_claims = 1 \
                 where tenant_id = 'acme' and lane = 5";
    tool.client.execute(lease, &[&60.0_f64]).await.unwrap();
    let moving = [
        "tenant",
        "move",
        "acme",
        "--pool",
        "big",
        "--without-consumers",
    ];
    let mut impatient = moving.to_vec();
    impatient.extend(["--within", "200ms"]);
    let told = tool.refused(1, &impatient).await;
    assert!(told.contains("did not become free"), "{told}");
    assert_eq!(pool(&tool).await, "shared");
    let held = "select count(*) from ticketflow.outbox_lanes where lease_token is not null";
    assert_eq!(tool.number(held).await, 1, "only the relay's lease is left");
    // The relay gives its lane back while the move waits.
    let settle = async {
        let leased = "select count(*) from ticketflow.outbox_lanes where leased_by like 'ticketflow tenant move%'";
        while tool.number(leased).await < 15 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pool(&tool).await, "shared");
        let give_back = "update ticketflow.outbox_lanes set lease_token = null, leased_by = null, \
                         leased_until = null where leased_by = 'relay'";
        tool.client.batch_execute(give_back).await.unwrap();
    };
    let (ran, ()) = tokio::join!(tool.run(&moving), settle);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(pool(&tool).await, "big");
    assert_eq!(tool.number(held).await, 0);
    let counted = "select unsettled_claims from ticketflow.outbox_lanes where tenant_id = 'acme' and lane = 5";
    assert_eq!(
        tool.number(counted).await,
        1,
        "what a relay left is not forgotten"
    );
    assert_eq!(tool.actions("tenant move").await.len(), 1);
    assert_eq!(tool.json(&moving).await["moved"], false);
    tool.refused(3, &["tenant", "move", "acme", "--pool", "nowhere"])
        .await;
    tool.refused(3, &["tenant", "move", "nobody", "--pool", "big"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_goes_when_nothing_is_in_it() {
    let tool = Tool::on("pool").await;
    tool.json(&["tenant", "add", "acme", "--pool", "big"]).await;
    tool.json(&["topology"]).await;
    let listed = tool.json(&["pool", "list"]).await;
    assert_eq!(listed[0]["pool"], "big");
    assert_eq!(
        (&listed[0]["tenants"], &listed[0]["ready"]),
        (&1.into(), &true.into())
    );
    assert_eq!(tool.run(&["pool", "show", "big", "--idle"]).await.status, 1);
    let told = tool
        .refused(1, &["pool", "remove", "big", "--within", "100ms"])
        .await;
    assert!(told.contains("pool big is in use: 1 tenants"), "{told}");
    tool.json(&[
        "tenant",
        "move",
        "acme",
        "--pool",
        "shared",
        "--without-consumers",
    ])
    .await;
    let wait = "insert into ticketflow.deferred_deliveries (state, effect_name, pool, digest, reason, applicable, \
                routing_key, properties, body, next_attempt_at) values ('deferred', 'audit', 'big', sha256('x'), \
                'x', false, 'x', '{}', '', clock_timestamp())";
    tool.client.batch_execute(wait).await.unwrap();
    let told = tool
        .refused(1, &["pool", "remove", "big", "--within", "100ms"])
        .await;
    assert!(told.contains("1 deliveries that wait"), "{told}");
    tool.client
        .batch_execute("delete from ticketflow.deferred_deliveries")
        .await
        .unwrap();
    assert_eq!(
        tool.json(&["pool", "show", "big", "--idle"]).await["idle"],
        true
    );
    tool.json(&["pool", "remove", "big", "--because", "a test"])
        .await;
    let queues = tool.site.queues().await.unwrap();
    assert!(
        queues
            .iter()
            .all(|queue| queue.name.starts_with("ticketflow.shared.")),
        "{queues:?}"
    );
    assert_eq!(tool.actions("pool remove").await.len(), 1);
    tool.refused(3, &["pool", "show", "big"]).await;
}
