//! Declaring, looking, deleting.

use broker::{BrokerError, DeclareError, EffectQueue, Look};
use event::{EffectName, dead_queue_name};

use crate::support::{Stage, eventually, good, publish, soon};

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_missing_then_present_then_missing_again() {
    let stage = Stage::set("look").await;
    let name = stage.queue.name();
    let present = Look::Present {
        messages: 0,
        consumers: 0,
    };
    assert_eq!(stage.broker.look_at(&name).await, Ok(present));
    stage.broker.delete_queue(&name).await.expect("deleted");
    stage
        .broker
        .delete_queue(&name)
        .await
        .expect("deleted already");
    assert_eq!(stage.broker.look_at(&name).await, Ok(Look::Missing));
    stage.declare().await;
    assert_eq!(stage.broker.look_at(&name).await, Ok(present));
}

#[tokio::test(flavor = "multi_thread")]
async fn declaring_again_changes_nothing_and_the_counts_are_told() {
    let stage = Stage::set("counts").await;
    let wave: Vec<_> = (0..7).map(good).collect();
    publish(&stage.broker, None, &wave, soon()).await;
    stage.declare().await;
    let name = stage.queue.name();
    eventually("seven messages", async || {
        stage.broker.look_at(&name).await
            == Ok(Look::Present {
                messages: 7,
                consumers: 0,
            })
    })
    .await;
    let _deliveries = stage.broker.deliveries(&name, 1).await.expect("subscribed");
    eventually("a consumer", async || {
        stage.broker.look_at(&name).await
            == Ok(Look::Present {
                messages: 6,
                consumers: 1,
            })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_made_otherwise_is_said_in_the_brokers_words() {
    let stage = Stage::set("otherwise").await;
    // The dead queue has other arguments than an effect's queue of that name would have.
    let name = dead_queue_name(&stage.queue.pool);
    let declare = format!(
        "rabbit_amqqueue:declare(rabbit_misc:r(<<\"{}\">>, queue, <<\"ticketflow.p.other\">>), true, false, [], none, <<\"test\">>), \"\"",
        stage.site.name
    );
    stage
        .site
        .sandbox()
        .evaluate(&declare)
        .await
        .expect("a classic queue");
    let other = EffectQueue {
        effect: EffectName::parse("other").expect("valid"),
        ..stage.queue.clone()
    };
    let error = stage
        .broker
        .declare_effect_queue(&other)
        .await
        .expect_err("made otherwise");
    let text = error.to_string();
    assert!(
        matches!(error, DeclareError::OtherArguments { .. }),
        "{text}"
    );
    assert!(
        text.contains("ticketflow.p.other") && text.contains("inequivalent arg"),
        "{text}"
    );
    assert!(matches!(
        stage.broker.look_at(&name).await,
        Ok(Look::Present { .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_arguments_are_those_of_the_contract() {
    let stage = Stage::set("arguments").await;
    let list = [
        "list_queues",
        "-p",
        &stage.site.name,
        "name",
        "durable",
        "arguments",
    ];
    let listing = stage
        .site
        .sandbox()
        .rabbitmqctl(&list)
        .await
        .expect("a listing");
    let line = listing
        .lines()
        .find(|line| line.contains("p.search"))
        .expect("the queue");
    for part in [
        "true",
        "\"x-queue-type\",\"quorum\"",
        "\"x-overflow\",\"reject-publish\"",
        "\"x-delivery-limit\",20",
        "\"x-dead-letter-exchange\",\"ticketflow.dead\"",
        "\"x-dead-letter-routing-key\",\"ticketflow.p.search\"",
        "\"x-dead-letter-strategy\",\"at-least-once\"",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!line.contains("max-length"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_too_long_for_amqp_is_refused_here() {
    let stage = Stage::set("toolong").await;
    let look = stage.broker.look_at(&"q".repeat(256)).await;
    assert!(matches!(look, Err(BrokerError::Invalid(_))), "{look:?}");
}
