//! What goes out is what comes in, and what was tampered with is refused.

#![allow(clippy::expect_used, reason = "a test stops at its first surprise")]

use std::collections::HashMap;

use bytes::Bytes;
use chrono::DateTime;
use event::{Delivered, Event, HeaderValue, Malformed, Message, NewEvent, PoolName, Unpublishable};
use event::{Headers, Identity, TraceContext};
use proptest::prelude::*;

fn event() -> Event {
    let new = NewEvent::json("acme", ("ticket", "t-1"), "ticket.created", "{\"a\":1.10}")
        .expect("valid names");
    Event {
        identity: Identity {
            event_id: "019ad7b2-7c1d-7e3a-9f00-0000000000dd"
                .parse()
                .expect("a uuid"),
            tenant_id: new.tenant_id,
            source: new.source,
        },
        aggregate: new.aggregate,
        version: Some(2),
        previous_version: Some(1),
        event_type: new.event_type,
        content_type: new.content_type,
        payload: new.payload,
        headers: Headers::from([("colour".to_owned(), "red".to_owned())]),
        trace_context: TraceContext {
            traceparent: Some("00-a-b-01".to_owned()),
            tracestate: None,
        },
        occurred_at: DateTime::from_timestamp_micros(1_796_069_700_123_456).expect("a time"),
    }
}

fn pool() -> PoolName {
    PoolName::parse("shared").expect("valid")
}

fn delivered(message: &Message) -> Delivered {
    let text = |(name, value): &(String, String)| (name.clone(), HeaderValue::Text(value.clone()));
    Delivered {
        routing_key: message.routing_key.clone(),
        message_id: Some(message.message_id.clone()),
        kind: Some(message.kind.clone()),
        content_type: Some(message.content_type.clone()),
        headers: message.headers.iter().map(text).collect::<HashMap<_, _>>(),
        body: message.body.clone(),
    }
}

fn message() -> Message {
    Message::of(&event(), &pool()).expect("publishable")
}

#[test]
fn an_event_survives_the_way_to_the_microsecond() {
    assert_eq!(delivered(&message()).read(), Ok(event()));
}

#[test]
fn a_replayed_message_is_judged_by_its_original_routing_key() {
    let replayed = message().readdressed("ticketflow.shared.search");
    assert_eq!(replayed.routing_key, "ticketflow.shared.search");
    assert_eq!(delivered(&replayed).read(), Ok(event()));
}

#[test]
fn either_prefix_of_the_binding_is_read() {
    let mut other = delivered(&message());
    other.headers = other
        .headers
        .into_iter()
        .map(|(name, value)| (name.replace("cloudEvents:", "cloudEvents_"), value))
        .collect();
    assert_eq!(other.read(), Ok(event()));
}

#[test]
fn another_tenants_routing_key_is_refused() {
    let mut forged = delivered(&message());
    forged.routing_key = forged.routing_key.replace("acme", "globex");
    assert!(matches!(
        forged.read(),
        Err(Malformed::Contradiction {
            one: "routing key",
            ..
        })
    ));
}

#[test]
fn every_missing_or_mistyped_attribute_is_named_and_the_identity_still_read() {
    let all = message();
    for (name, _) in all
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("cloudEvents:"))
    {
        let mut missing = delivered(&all);
        missing.headers.remove(name);
        let error = missing.read().expect_err(name);
        assert!(matches!(error, Malformed::Missing(_)), "{name}: {error}");
        let mut mistyped = delivered(&all);
        mistyped
            .headers
            .insert(name.clone(), HeaderValue::Other("table"));
        assert!(mistyped.read().is_err(), "{name}");
    }
    let mut unknown = delivered(&all);
    unknown.headers.insert(
        "cloudEvents:specversion".into(),
        HeaderValue::Text("2.0".into()),
    );
    assert!(unknown.read().is_err());
    assert_eq!(
        unknown.partial_identity().event_id,
        Some(event().identity.event_id)
    );
}

#[test]
fn what_the_broker_would_choke_on_is_refused_here() {
    let mut large = event();
    large.payload = Bytes::from(vec![0; event::PAYLOAD_BYTES + 1]);
    assert!(matches!(
        Message::of(&large, &pool()),
        Err(Unpublishable::Payload { .. })
    ));

    let mut many = event();
    many.headers = (0..5)
        .map(|n| (format!("n{n}"), "x".repeat(4096)))
        .collect();
    assert!(matches!(
        Message::of(&many, &pool()),
        Err(Unpublishable::Headers { .. })
    ));

    let mut trace = event();
    trace.trace_context.tracestate = Some("x".repeat(130_000));
    assert!(matches!(
        Message::of(&trace, &pool()),
        Err(Unpublishable::Header { .. })
    ));
}

proptest! {
    #[test]
    fn reading_never_panics(
        key in ".{0,80}",
        headers in prop::collection::hash_map("(cloudEvents[:_])?[a-z]{0,12}", ".{0,20}", 0..20),
        body in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let headers = headers
            .into_iter()
            .map(|(name, value)| (name, HeaderValue::Text(value)))
            .collect();
        let delivered = Delivered { routing_key: key, headers, body: body.into(), ..Delivered::default() };
        prop_assert!(delivered.read().is_err());
        let _ = delivered.partial_identity();
    }
}
