//! Waves on a whole broker: the outcome is the one of that very message (B01, B02, B10, B11, B13).

use std::collections::BTreeSet;

use broker::{BrokerError, Doubt, Publish, PublishOutcome, Publishers, Refusal, Route};
use event::{EXCHANGE, Message};

use crate::support::{LARGEST_BODY, Stage, good, message, publish, soon, unroutable};

fn is_unroutable(outcome: &PublishOutcome) -> bool {
    matches!(outcome, PublishOutcome::Unroutable { code: 312, .. })
}

fn close_code(outcome: &PublishOutcome) -> Option<u16> {
    match outcome {
        PublishOutcome::Refused(Refusal::Closed(closed))
        | PublishOutcome::Unknown(Doubt::Closed(closed)) => Some(closed.code),
        PublishOutcome::Confirmed
        | PublishOutcome::Unroutable { .. }
        | PublishOutcome::Refused(Refusal::Nack | Refusal::Invalid { .. })
        | PublishOutcome::Unknown(
            Doubt::NotSent { .. }
            | Doubt::LinkLost { .. }
            | Doubt::Blocked { .. }
            | Doubt::TimedOut
            | Doubt::NotConfirming,
        ) => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b01_a_return_counts_against_its_own_message_in_a_full_pipeline() {
    let stage = Stage::set("b01").await;
    let mut publisher = None;
    let mut confirmed = BTreeSet::new();
    for round in 0..20 {
        let wave: Vec<Message> = (0..400)
            .map(|n| match n % 7 {
                0 => unroutable(format!("{round}-{n}")),
                _ => good(format!("{round}-{n}")),
            })
            .collect();
        let (outcomes, back) = publish(&stage.broker, publisher, &wave, soon()).await;
        for (n, outcome) in outcomes.iter().enumerate() {
            match n % 7 {
                0 => assert!(is_unroutable(outcome), "{round}-{n}: {outcome}"),
                _ => assert_eq!(*outcome, PublishOutcome::Confirmed, "{round}-{n}"),
            }
        }
        let ids = wave
            .iter()
            .zip(&outcomes)
            .filter(|(_, o)| **o == PublishOutcome::Confirmed);
        confirmed.extend(ids.map(|(message, _)| message.message_id.clone()));
        publisher = Some(back.expect("a complete wave leaves its publisher usable"));
    }
    let arrived = stage.drain(&stage.queue.name(), confirmed.len()).await;
    assert_eq!(arrived.len(), confirmed.len());
    assert_eq!(arrived.into_iter().collect::<BTreeSet<_>>(), confirmed);
}

#[tokio::test(flavor = "multi_thread")]
async fn b02_publishers_at_once_do_not_get_each_others_answers() {
    let stage = Stage::set("b02").await;
    let one = async {
        let mut publisher = None;
        for _ in 0..20 {
            let wave: Vec<_> = (0..200).map(unroutable).collect();
            let (outcomes, back) = publish(&stage.broker, publisher, &wave, soon()).await;
            assert!(outcomes.iter().all(is_unroutable));
            publisher = back;
        }
    };
    let other = async {
        let mut publisher = None;
        for _ in 0..20 {
            let wave: Vec<_> = (0..200).map(good).collect();
            let (outcomes, back) = publish(&stage.broker, publisher, &wave, soon()).await;
            assert!(
                outcomes
                    .iter()
                    .all(|outcome| *outcome == PublishOutcome::Confirmed)
            );
            publisher = back;
        }
    };
    tokio::join!(one, other);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wave_arrives_in_its_order_and_byte_for_byte() {
    let stage = Stage::set("order").await;
    let wave: Vec<_> = (0..512).map(good).collect();
    let (outcomes, _) = publish(&stage.broker, None, &wave, soon()).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| *outcome == PublishOutcome::Confirmed)
    );
    let arrived = stage.drain(&stage.queue.name(), 512).await;
    let sent: Vec<_> = wave
        .iter()
        .map(|message| message.message_id.clone())
        .collect();
    assert_eq!(arrived, sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_messages_of_one_id_in_a_wave_are_told_apart() {
    let stage = Stage::set("twins").await;
    let wave = [good("same"), unroutable("same"), good("other")];
    let (outcomes, _) = publish(&stage.broker, None, &wave, soon()).await;
    assert_eq!(outcomes[0], PublishOutcome::Confirmed);
    assert!(is_unroutable(&outcomes[1]));
    assert_eq!(outcomes[2], PublishOutcome::Confirmed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_goes_to_the_one_queue_it_names() {
    let stage = Stage::set("replay").await;
    let name = stage.queue.name();
    let publisher = stage.broker.publisher().await.expect("a publisher");
    let wave = [
        good("a").readdressed(&name),
        good("b").readdressed("nowhere"),
    ];
    let wave = publisher.publish_wave(Route::Queue, &wave, soon()).await;
    assert_eq!(wave.outcomes[0], PublishOutcome::Confirmed);
    assert!(is_unroutable(&wave.outcomes[1]));
    let mut deliveries = stage.broker.deliveries(&name, 1).await.expect("a queue");
    let batch = deliveries
        .batch(crate::support::limits(1))
        .await
        .expect("one");
    let received = &batch.deliveries()[0].delivered;
    assert_eq!(received.original_routing_key(), "p.00.acme.ticket.created");
    batch.ack().await.expect("acknowledged");
}

#[tokio::test(flavor = "multi_thread")]
async fn b10_a_full_queue_nacks_and_nothing_is_confirmed_until_it_has_room() {
    let stage = Stage::set("b10").await;
    // A policy stands for the limit: the queue itself is declared without one.
    let vhost = stage.site.name.as_str();
    let definition = r#"{"max-length":1}"#;
    let set = ["set_policy", "-p", vhost, "full", ".*search", definition];
    stage
        .site
        .sandbox()
        .rabbitmqctl(&set)
        .await
        .expect("a policy");
    let mut publisher = None;
    crate::support::eventually("the queue nacks", async || {
        let (outcomes, back) =
            publish(&stage.broker, publisher.take(), &[good("filler")], soon()).await;
        publisher = back;
        outcomes == [PublishOutcome::Refused(Refusal::Nack)]
    })
    .await;
    let wave: Vec<_> = (0..10).map(good).collect();
    let (outcomes, back) = publish(&stage.broker, publisher.take(), &wave, soon()).await;
    assert_eq!(outcomes, vec![PublishOutcome::Refused(Refusal::Nack); 10]);
    assert!(back.is_some(), "a nack is an answer");
    let clear = ["clear_policy", "-p", vhost, "full"];
    stage
        .site
        .sandbox()
        .rabbitmqctl(&clear)
        .await
        .expect("no policy");
    crate::support::eventually("the queue takes again", async || {
        let (outcomes, _) = publish(&stage.broker, None, &wave, soon()).await;
        outcomes == vec![PublishOutcome::Confirmed; 10]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b11_a_closed_channel_leaves_doubt_and_one_by_one_finds_the_culprit() {
    let stage = Stage::set("b11").await;
    // A body over the broker's limit closes the channel with 406; its neighbours are innocent.
    stage.limit_bodies().await;
    let mut wave: Vec<_> = (0..9).map(good).collect();
    wave[4].body = vec![b'x'; LARGEST_BODY + 1].into();
    let (outcomes, back) = publish(&stage.broker, None, &wave, soon()).await;
    assert!(back.is_none(), "a dead channel is not handed back");
    assert_eq!(close_code(&outcomes[4]), Some(406), "{}", outcomes[4]);
    for outcome in &outcomes {
        assert!(
            matches!(
                outcome,
                PublishOutcome::Confirmed | PublishOutcome::Unknown(_)
            ),
            "nobody is refused while several are suspect: {outcome}"
        );
    }
    let mut publisher = None;
    for (n, suspect) in wave.iter().enumerate() {
        let (outcomes, back) = publish(
            &stage.broker,
            publisher,
            std::slice::from_ref(suspect),
            soon(),
        )
        .await;
        publisher = back;
        match n {
            4 => {
                assert!(matches!(
                    outcomes[0],
                    PublishOutcome::Refused(Refusal::Closed(_))
                ));
                assert_eq!(close_code(&outcomes[0]), Some(406));
            }
            _ => assert_eq!(outcomes, [PublishOutcome::Confirmed]),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_exchange_is_said_with_its_code() {
    let stage = Stage::set("noexchange").await;
    let delete = format!(
        "rabbit_exchange:delete(rabbit_misc:r(<<\"{}\">>, exchange, <<\"{EXCHANGE}\">>), false, <<\"test\">>), \"\"",
        stage.site.name
    );
    stage
        .site
        .sandbox()
        .evaluate(&delete)
        .await
        .expect("no exchange");
    let wave: Vec<_> = (0..50).map(good).collect();
    let (outcomes, back) = publish(&stage.broker, None, &wave, soon()).await;
    assert!(back.is_none());
    for outcome in &outcomes {
        assert_eq!(close_code(outcome), Some(404), "{outcome}");
    }
    let (alone, _) = publish(&stage.broker, None, &wave[..1], soon()).await;
    assert!(
        matches!(&alone[0], PublishOutcome::Refused(Refusal::Closed(closed)) if closed.code == 404)
    );
    stage.declare().await;
    let (outcomes, _) = publish(&stage.broker, None, &wave, soon()).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| *outcome == PublishOutcome::Confirmed)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn b13_what_would_kill_the_connection_never_reaches_it() {
    let stage = Stage::set("b13").await;
    let mut wave: Vec<_> = (0..50).map(good).collect();
    wave[10]
        .headers
        .push(("tracestate".to_owned(), "x".repeat(131_072)));
    wave[20] = message("20", &"k".repeat(256));
    wave[30].headers.push(("n".repeat(256), String::new()));
    let (outcomes, back) = publish(&stage.broker, None, &wave, soon()).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        match n {
            10 | 20 | 30 => assert!(
                matches!(outcome, PublishOutcome::Refused(Refusal::Invalid { .. })),
                "{n}: {outcome}"
            ),
            _ => assert_eq!(*outcome, PublishOutcome::Confirmed, "{n}"),
        }
    }
    assert!(back.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_header_frame_that_is_let_through_is_taken() {
    let stage = Stage::set("frame").await;
    let mut publisher = stage.broker.publisher().await.expect("a publisher");
    let mut sent = 0;
    for bytes in (130_400..131_100).step_by(10) {
        let mut large = good(bytes);
        large
            .headers
            .push(("h-large".to_owned(), "x".repeat(bytes)));
        let wave = publisher
            .publish_wave(Route::Events, &[large], soon())
            .await;
        match &wave.outcomes[0] {
            PublishOutcome::Confirmed => sent += 1,
            PublishOutcome::Refused(Refusal::Invalid { .. }) => {}
            other @ (PublishOutcome::Unroutable { .. }
            | PublishOutcome::Refused(_)
            | PublishOutcome::Unknown(_)) => panic!("{bytes}: {other}"),
        }
        publisher = wave.publisher.expect("still usable");
    }
    assert!(sent > 10, "the limit is close to the frame's: {sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_publisher_has_a_connection_of_its_own() {
    let stage = Stage::set("lone").await;
    let lone = stage.broker.lone_publisher().await.expect("a publisher");
    stage.site.close_connections().await.expect("closed");
    let wave = lone.publish_wave(Route::Events, &[good(1)], soon()).await;
    assert!(
        matches!(&wave.outcomes[0], PublishOutcome::Unknown(_)),
        "an operator's close is nobody's fault: {}",
        wave.outcomes[0]
    );
    assert!(wave.publisher.is_none());
    crate::support::eventually("a new lone publisher works", async || {
        match stage.broker.lone_publisher().await {
            Ok(lone) => {
                let wave = lone.publish_wave(Route::Events, &[good(2)], soon()).await;
                wave.outcomes == [PublishOutcome::Confirmed]
            }
            Err(BrokerError::Unavailable(_)) => false,
            Err(other) => panic!("{other}"),
        }
    })
    .await;
}
