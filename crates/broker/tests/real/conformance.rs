//! One list of promises for the real publisher and the scripted one.

use broker::{Doubt, Publish, PublishOutcome, Publishers, Refusal, Route, ScriptedBroker};
use event::Message;

use crate::support::{LARGEST_BODY, Stage, good, soon, unroutable};

/// A message that closes its channel.
fn fatal() -> Message {
    let mut fatal = good("fatal");
    fatal.body = vec![b'x'; LARGEST_BODY + 1].into();
    fatal
}

/// A message that does not fit into AMQP.
fn invalid() -> Message {
    crate::support::message("invalid", &"k".repeat(256))
}

async fn conforms(broker: &impl Publishers) {
    let publisher = broker.publisher().await.expect("a publisher");

    let wave = publisher.publish_wave(Route::Events, &[], soon()).await;
    assert_eq!(wave.outcomes, [], "an empty wave has no outcomes");
    let publisher = wave.publisher.expect("an empty wave spends nothing");

    let messages = [good(1), unroutable(2), invalid(), good(3)];
    let wave = publisher
        .publish_wave(Route::Events, &messages, soon())
        .await;
    let [first, second, third, fourth] = &wave.outcomes[..] else {
        panic!("an outcome each, in order");
    };
    assert_eq!(*first, PublishOutcome::Confirmed);
    assert!(matches!(second, PublishOutcome::Unroutable { .. }));
    assert!(matches!(
        third,
        PublishOutcome::Refused(Refusal::Invalid { .. })
    ));
    assert_eq!(*fourth, PublishOutcome::Confirmed);
    let publisher = wave.publisher.expect("answers of every kind spend nothing");

    let wave = publisher
        .publish_wave(Route::Events, &[fatal()], soon())
        .await;
    assert!(matches!(
        wave.outcomes[..],
        [PublishOutcome::Refused(Refusal::Closed(_))]
    ));
    assert!(wave.publisher.is_none(), "a closed channel is spent");

    let lone = broker.lone_publisher().await.expect("a lone publisher");
    let wave = lone.publish_wave(Route::Events, &[good(4)], soon()).await;
    assert_eq!(wave.outcomes, [PublishOutcome::Confirmed]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_publisher_conforms() {
    let stage = Stage::set("conformance").await;
    stage.limit_bodies().await;
    conforms(&stage.broker).await;
}

#[tokio::test]
async fn the_scripted_publisher_conforms() {
    let scripted = ScriptedBroker::new(|message| match message.message_id.as_str() {
        "fatal" => PublishOutcome::Refused(Refusal::Closed(broker::Closed {
            code: 406,
            text: "PRECONDITION_FAILED".to_owned(),
            level: broker::Level::Channel,
        })),
        "invalid" => PublishOutcome::Refused(Refusal::Invalid {
            reason: "too long".to_owned(),
        }),
        _ if message.routing_key.starts_with("p.") => PublishOutcome::Confirmed,
        _ => PublishOutcome::Unroutable {
            code: 312,
            text: "NO_ROUTE".to_owned(),
        },
    });
    conforms(&scripted).await;
    let waves = scripted.waves();
    assert_eq!(
        waves.iter().map(|(_, wave)| wave.len()).collect::<Vec<_>>(),
        [0, 4, 1, 1]
    );
    assert_eq!(waves[1].1[0], good(1), "it keeps what it was given");
}

#[tokio::test]
async fn a_scripted_doubt_spends_the_publisher() {
    let scripted = ScriptedBroker::new(|_| PublishOutcome::Unknown(Doubt::TimedOut));
    let publisher = scripted.publisher().await.expect("a publisher");
    let wave = publisher
        .publish_wave(Route::Events, &[good(1)], soon())
        .await;
    assert!(wave.publisher.is_none());
}
