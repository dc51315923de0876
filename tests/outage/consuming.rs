//! The consumer's servers away: it takes nothing, acknowledges nothing, and resumes alone.

use std::sync::Arc;
use std::time::Duration;

use event::Message;
use sandbox::{FaultProxy, Sandbox, SandboxOptions};
use uuid::Uuid;

use crate::consuming::{Running, Stage, message, ticket_event};
use crate::scripted::{Do, Scripted, TABLE};

const DOCUMENTS: &str = "select count(*) from ticketflow.search_documents";

async fn through(stage: &Stage, database: &FaultProxy, broker: &FaultProxy) -> Running {
    let config = stage.config_through(
        &stage.site.database_url_through(database.port()),
        &stage.site.amqp_url_through(broker.port()),
        &[
            "--effects",
            "search",
            "--deadline",
            "2s",
            "--database-connect-timeout",
            "1s",
        ],
    );
    Running::start(config, vec![consumer::effects::by_name("search").unwrap()]).await
}

async fn proxies(stage: &Stage) -> (FaultProxy, FaultProxy) {
    let sandbox = stage.site.sandbox();
    let database = FaultProxy::start(sandbox.postgres().port()).await.unwrap();
    let broker = FaultProxy::start(sandbox.rabbitmq().port()).await.unwrap();
    (database, broker)
}

fn some(number: usize) -> Vec<Message> {
    (0..number)
        .map(|_| message(&ticket_event("acme", Uuid::now_v7(), 1)))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_database_away_nothing_is_taken_or_lost() {
    let stage = Stage::new("database_away").await;
    let (database, broker) = proxies(&stage).await;
    let consumer = through(&stage, &database, &broker).await;
    stage.send_to("search", some(50)).await;
    stage.until(DOCUMENTS, 50).await;
    consumer.until_ready(true).await;
    for (round, silent) in [(1, false), (2, true)] {
        stage.until_empty().await;
        match silent {
            true => database.blackhole(),
            false => database.cut(),
        }
        stage.send_to("search", some(100)).await;
        consumer.until_ready(false).await;
        // Taken or not, none is acknowledged.
        stage.until_held("search", 100).await;
        database.restore();
        stage.until(DOCUMENTS, 50 + 100 * round).await;
        consumer.until_ready(true).await;
    }
    let copies = "select count(*) from ticketflow.deferred_deliveries";
    assert_eq!(
        stage.count(copies).await,
        0,
        "an outage is nobody's refusal"
    );
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_broker_away_it_says_so_and_resumes_alone() {
    let stage = Stage::new("broker_away").await;
    let (database, broker) = proxies(&stage).await;
    let consumer = through(&stage, &database, &broker).await;
    consumer.until_ready(true).await;
    for round in 1..=3 {
        broker.cut();
        consumer.until_ready(false).await;
        stage.send_to("search", some(20)).await;
        broker.restore();
        stage.until(DOCUMENTS, 20 * round).await;
        consumer.until_ready(true).await;
    }
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_commit_is_found_to_be_done() {
    let stage = Stage::new("lost_commit").await;
    let (database, broker) = proxies(&stage).await;
    let consumer = through(&stage, &database, &broker).await;
    consumer.until_ready(true).await;
    for round in 1..=5 {
        let _trap = database.drop_answer_to_commit();
        stage.send_to("search", some(10)).await;
        stage.until(DOCUMENTS, 10 * round).await;
    }
    database.restore();
    stage.until_unacked("search", 0).await;
    let receipts = "select count(*) from ticketflow.effect_receipts where effect_name = 'search'";
    assert_eq!(stage.count(receipts).await, 50);
    consumer.stop().await;
}

/// A deadline above the broker's own limit for acknowledgements, which no client can ask for.
#[tokio::test(flavor = "multi_thread")]
async fn b17_an_effect_that_outlives_the_acknowledgement_timeout_is_applied_once() {
    let sandbox = Sandbox::start(SandboxOptions::default()).await.unwrap();
    let impatient = r#"application:set_env(rabbit, consumer_timeout, 2000),
        application:set_env(rabbit, channel_tick_interval, 500), "done""#;
    sandbox.evaluate(impatient).await.unwrap();
    let stage = Stage::on(&Arc::new(sandbox), "b17").await;
    stage.run(TABLE).await;
    let events: Vec<_> = (0..5)
        .map(|_| ticket_event("acme", Uuid::now_v7(), 1))
        .collect();
    let effect = Scripted::new("search");
    effect.with_event(&events[0], Do::WriteAfter(Duration::from_secs(8)));
    stage.publish(&events).await;
    let consumer = stage
        .consumer_of(effect.clone(), &["--deadline", "30s"])
        .await;
    let duplicates = r#"consumer_deliveries_total{effect="search",outcome="duplicate"}"#;
    let before = consumer.metric(duplicates).await;
    effect.until_tried(&events[0]).await;
    effect.with_event(&events[0], Do::Write);
    stage
        .until("select count(*) from ticketflow.effect_receipts", 5)
        .await;
    consumer.until_ready(true).await;
    stage.until_held("search", 0).await;
    // The broker closed the channel under the effect, and delivered again what was done.
    let after = consumer.metric(duplicates).await;
    assert!(after > before, "{before}, {after}");
    for query in [
        "select count(*) from public.effects",
        "select count(distinct event_id) from public.effects",
    ] {
        assert_eq!(stage.count(query).await, 5);
    }
    let parked = "select count(*) from ticketflow.deferred_deliveries";
    assert_eq!(stage.count(parked).await, 0);
    consumer.stop().await;
}
