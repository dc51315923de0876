//! Deliveries on a whole broker: batches, prefetch, dead letters, hostile headers.

use std::time::Duration;

use broker::{Batch, BatchLimits, Deliveries, Ended, Look, restore};
use event::{Delivered, HeaderValue, dead_queue_name};

use crate::support::{PATIENCE, Stage, connected, eventually, good, limits, publish, soon};

async fn stage_with(name: &str, messages: u32) -> Stage {
    let stage = Stage::set(name).await;
    let wave: Vec<_> = (0..messages).map(good).collect();
    publish(&stage.broker, None, &wave, soon()).await;
    stage
}

async fn next(deliveries: &mut Deliveries, limits: BatchLimits) -> Batch<'_> {
    let batch = tokio::time::timeout(PATIENCE, deliveries.batch(limits)).await;
    batch.expect("in time").expect("a batch")
}

fn ids(batch: &Batch<'_>) -> Vec<String> {
    let received = batch.deliveries().iter();
    received
        .filter_map(|received| received.delivered.message_id.clone())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledgement_covers_its_batch_and_nothing_after_it() {
    let stage = stage_with("cover", 30).await;
    let name = stage.queue.name();
    let consumer = connected(&stage.site.amqp_url).await;
    let mut deliveries = consumer.deliveries(&name, 30).await.expect("subscribed");
    let patient = BatchLimits {
        linger: Duration::from_secs(2),
        ..limits(10)
    };
    let batch = next(&mut deliveries, patient).await;
    assert_eq!(
        ids(&batch),
        (0..10).map(|n| n.to_string()).collect::<Vec<_>>()
    );
    batch.ack().await.expect("acknowledged");
    // What is prefetched and not acknowledged comes back, all twenty of it.
    drop(deliveries);
    consumer.close().await;
    eventually("twenty are left", async || {
        stage.broker.look_at(&name).await
            == Ok(Look::Present {
                messages: 20,
                consumers: 0,
            })
    })
    .await;
    let rest = stage.drain(&name, 20).await;
    assert_eq!(rest[0], "10");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_bounded_by_count_and_by_bytes_but_never_empty() {
    let stage = stage_with("bounds", 10).await;
    let mut deliveries = stage
        .broker
        .deliveries(&stage.queue.name(), 10)
        .await
        .expect("subscribed");
    let patient = |deliveries, bytes| BatchLimits {
        deliveries,
        bytes,
        linger: Duration::from_secs(2),
    };
    let batch = next(&mut deliveries, patient(3, usize::MAX)).await;
    assert_eq!(batch.deliveries().len(), 3);
    batch.ack().await.expect("acknowledged");
    let batch = next(&mut deliveries, patient(100, 1_100)).await;
    assert_eq!(batch.deliveries().len(), 2, "bodies have 500 bytes");
    batch.ack().await.expect("acknowledged");
    let batch = next(&mut deliveries, patient(100, 1)).await;
    assert_eq!(batch.deliveries().len(), 1);
    batch.ack().await.expect("acknowledged");
    let batch = next(&mut deliveries, patient(4, usize::MAX)).await;
    assert_eq!(ids(&batch), ["6", "7", "8", "9"]);
    batch.ack().await.expect("acknowledged");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_batch_may_be_given_up_without_losing_a_delivery() {
    let stage = stage_with("giveup", 200).await;
    let mut deliveries = stage
        .broker
        .deliveries(&stage.queue.name(), 50)
        .await
        .expect("subscribed");
    let mut seen = Vec::new();
    let mut tries = 0;
    while seen.len() < 200 {
        tries += 1;
        let hasty = Duration::from_micros(tries % 97);
        if tries == 40 {
            deliveries.set_prefetch(200).await;
        }
        let slow = BatchLimits {
            linger: Duration::from_millis(1),
            ..limits(7)
        };
        if let Ok(batch) = tokio::time::timeout(hasty, deliveries.batch(slow)).await {
            let batch = batch.expect("a batch");
            seen.extend(ids(&batch));
            batch.ack().await.expect("acknowledged");
        }
        assert!(tries < 1_000_000, "stuck at {}", seen.len());
    }
    assert_eq!(seen, (0..200).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_prefetch_counts_from_then_on() {
    let stage = stage_with("prefetch", 100).await;
    let name = stage.queue.name();
    let mut deliveries = stage.broker.deliveries(&name, 1).await.expect("subscribed");
    let unacked = async || {
        let queues = stage.site.queues().await.expect("counts");
        queues
            .iter()
            .find(|queue| queue.name == name)
            .map_or(0, |queue| queue.unacked)
    };
    eventually("one is out", async || unacked().await == 1).await;
    let mut taken = 0;
    for (before, after) in [(1, 8), (8, 32)] {
        deliveries.set_prefetch(after).await;
        // What had been prefetched is finished first; then comes the new number.
        for _ in 0..=before {
            let batch = next(&mut deliveries, limits(1)).await;
            batch.ack().await.expect("acknowledged");
            taken += 1;
        }
        eventually("as many are out", async || {
            unacked().await == u64::from(after)
        })
        .await;
    }
    deliveries.cancel().await;
    let mut rest = 0;
    let ended = loop {
        match deliveries.batch(limits(500)).await {
            Ok(batch) => {
                rest += batch.deliveries().len();
                batch.ack().await.expect("acknowledged");
            }
            Err(ended) => break ended,
        }
    };
    assert_eq!(ended, Ended::Cancelled);
    assert!(
        (1..100).contains(&rest),
        "what was on its way still came: {rest}"
    );
    let left = 100 - taken - rest;
    eventually("the rest waits", async || {
        let messages = u32::try_from(left).unwrap();
        stage.broker.look_at(&name).await
            == Ok(Look::Present {
                messages,
                consumers: 0,
            })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_batch_ends_its_subscription_and_comes_again() {
    let stage = stage_with("abandon", 20).await;
    let name = stage.queue.name();
    let mut deliveries = stage
        .broker
        .deliveries(&name, 20)
        .await
        .expect("subscribed");
    drop(next(&mut deliveries, limits(5)).await);
    let ended = deliveries.batch(limits(5)).await.map(|batch| ids(&batch));
    assert_eq!(ended, Err(Ended::Abandoned));
    drop(deliveries);
    let mut all = stage.drain(&name, 20).await;
    all.sort_by_key(|id| id.parse::<u32>().unwrap());
    assert_eq!(all, (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_tells_its_effect_and_its_first_key() {
    let stage = stage_with("dead", 1).await;
    let name = stage.queue.name();
    // Twenty unclean ends use up the delivery limit.
    let mut dead = stage
        .broker
        .deliveries(&dead_queue_name(&stage.queue.pool), 1)
        .await
        .expect("subscribed");
    let died = async {
        loop {
            let mut deliveries = stage.broker.deliveries(&name, 1).await.expect("subscribed");
            let batch = deliveries.batch(limits(1)).await.expect("a batch");
            drop(batch);
        }
    };
    let letter = async {
        let batch = next(&mut dead, limits(1)).await;
        let received = &batch.deliveries()[0];
        let death = received.death.clone().expect("a death");
        assert_eq!(death.queue, name);
        assert_eq!(death.reason, "delivery_limit");
        assert_eq!(death.count, 1);
        assert_eq!(
            death.routing_key.as_deref(),
            Some("p.00.acme.ticket.created")
        );
        assert_eq!(
            received.delivered.original_routing_key(),
            "p.00.acme.ticket.created"
        );
        assert_same(
            &restore(&received.kept(), received.body().clone()),
            &received.delivered,
        );
        batch.ack().await.expect("acknowledged");
    };
    tokio::select! {
        () = died => unreachable!("it goes on for ever"),
        () = letter => {}
    }
}

fn assert_same(one: &Delivered, other: &Delivered) {
    assert_eq!(one.routing_key, other.routing_key);
    assert_eq!(one.message_id, other.message_id);
    assert_eq!(one.kind, other.kind);
    assert_eq!(one.content_type, other.content_type);
    assert_eq!(one.headers, other.headers);
    assert_eq!(one.body, other.body);
}

/// An Erlang term: a message with a header of every type the broker knows.
const EVERY_TYPE: &str = r#"
    [{<<"text">>, longstr, <<"red">>}, {<<"nul">>, longstr, <<"a", 0, "b">>},
     {<<"latin">>, longstr, <<233>>}, {<<"yes">>, bool, true}, {<<"nothing">>, void, undefined},
     {<<"byte">>, byte, -1}, {<<"short">>, short, -2}, {<<"int">>, signedint, -3},
     {<<"long">>, long, -9223372036854775808}, {<<"float">>, float, 1.5},
     {<<"double">>, double, 1.0e300}, {<<"decimal">>, decimal, {2, 314}},
     {<<"time">>, timestamp, 1796069700}, {<<"binary">>, binary, <<0, 255>>},
     {<<"table">>, table, [{<<"inner">>, table, [{<<"x">>, longstr, <<"y">>}]}]},
     {<<"array">>, array, [{longstr, <<"a">>}, {table, []}, {array, []}]},
     {<<"x-death">>, longstr, <<"forged">>}]"#;

/// Publishes from within the broker, which has no client's limits. `headers` is an Erlang term.
async fn publish_inside(stage: &Stage, headers: &str) {
    let publish = format!(
        "X = rabbit_misc:r(<<\"{}\">>, exchange, <<\"ticketflow.events\">>), \
         P = {{'P_basic', undefined, undefined, {headers}, 2, undefined, undefined, undefined, \
              undefined, undefined, undefined, undefined, undefined, undefined, undefined}}, \
         C = rabbit_basic:build_content(P, <<0, 255>>), \
         {{ok, M}} = rabbit_basic:message(X, <<\"p.00.acme.ticket.created\">>, C), \
         rabbit_basic:publish(rabbit_basic:delivery(false, false, M, undefined)), \"\"",
        stage.site.name
    );
    stage
        .site
        .sandbox()
        .evaluate(&publish)
        .await
        .expect("published");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_of_any_type_is_read_kept_and_restored() {
    let stage = Stage::set("types").await;
    publish_inside(&stage, EVERY_TYPE).await;
    let mut deliveries = stage
        .broker
        .deliveries(&stage.queue.name(), 1)
        .await
        .expect("subscribed");
    let batch = next(&mut deliveries, limits(1)).await;
    let received = &batch.deliveries()[0];
    let header = |name: &str| received.delivered.headers.get(name).cloned();
    assert_eq!(header("text"), Some(HeaderValue::Text("red".to_owned())));
    assert_eq!(header("nul"), Some(HeaderValue::Text("a\0b".to_owned())));
    assert_eq!(
        header("latin"),
        Some(HeaderValue::Other("text that is not UTF-8"))
    );
    assert_eq!(header("table"), Some(HeaderValue::Other("a table")));
    assert_eq!(received.delivered.headers.len(), 17);
    assert_eq!(
        received.death, None,
        "what did not come from the dead exchange did not die"
    );
    let kept = received.kept();
    assert!(
        !kept.to_string().contains("\\u0000"),
        "jsonb takes it: {kept}"
    );
    assert_eq!(kept["headers"]["long"], i64::MIN);
    assert_eq!(
        kept["headers"]["table"]["table"]["inner"]["table"]["x"],
        "y"
    );
    assert_same(
        &restore(&kept, received.body().clone()),
        &received.delivered,
    );
    let database = stage.site.database().await.expect("a database");
    let back = database
        .query_one("select $1::text::jsonb::text", &[&kept.to_string()])
        .await
        .expect("jsonb takes it");
    let back = serde_json::from_str(back.get(0)).expect("JSON");
    assert_same(
        &restore(&back, received.body().clone()),
        &received.delivered,
    );
    batch.ack().await.expect("acknowledged");
}

/// Thousands of arrays in each other, which overflow a stack, and a name that is not UTF-8, which
/// breaks a connection. Deeper still the broker itself takes seconds over it.
const FATAL: &str = "[{<<\"deep\">>, array, lists:foldl(fun(_, A) -> [{array, A}] end, [], lists:seq(1, 8000))}, \
     {<<\"caf\", 233>>, longstr, <<\"x\">>}]";

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_would_kill_the_client_is_a_delivery_like_any_other() {
    let stage = Stage::set("fatal").await;
    publish_inside(&stage, FATAL).await;
    publish(&stage.broker, None, &[good("after")], soon()).await;
    let mut deliveries = stage
        .broker
        .deliveries(&stage.queue.name(), 10)
        .await
        .expect("subscribed");
    let patient = BatchLimits {
        linger: Duration::from_secs(2),
        ..limits(2)
    };
    let batch = next(&mut deliveries, patient).await;
    let [fatal, after] = batch.deliveries() else {
        panic!("both of them");
    };
    assert_eq!(
        fatal.delivered.headers.get("deep"),
        Some(&HeaderValue::Other("an array"))
    );
    assert_eq!(
        fatal.delivered.headers.get("caf?"),
        Some(&HeaderValue::Text("x".to_owned()))
    );
    assert_same(
        &restore(&fatal.kept(), fatal.body().clone()),
        &fatal.delivered,
    );
    assert_eq!(after.delivered.message_id.as_deref(), Some("after"));
    batch.ack().await.expect("acknowledged");
}
