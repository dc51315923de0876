//! Lane and digest agree with the published test vectors.

#![allow(clippy::expect_used, reason = "a test stops at its first surprise")]

use bytes::Bytes;
use chrono::DateTime;
use event::{
    Aggregate, AggregateId, AggregateType, ContentType, Digest, Event, EventType, Headers,
    Identity, Lane, Source, TenantId, TraceContext,
};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors.json")).expect("vectors are JSON")
}

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().expect("a text field")
}

fn aggregate(case: &Value) -> Aggregate {
    Aggregate {
        aggregate_type: AggregateType::parse(text(case, "aggregate_type")).expect("valid"),
        aggregate_id: AggregateId::parse(text(case, "aggregate_id")).expect("valid"),
    }
}

#[test]
fn lanes_agree_with_the_vectors() {
    let vectors = vectors();
    let cases = vectors["lane"]["cases"].as_array().expect("cases");
    assert!(!cases.is_empty());
    for case in cases {
        let tenant = TenantId::parse(text(case, "tenant_id")).expect("valid");
        let lane = Lane::of(&tenant, &aggregate(case)).number();
        assert_eq!(Some(i64::from(lane)), case["lane"].as_i64(), "{case}");
    }
}

#[test]
fn digests_agree_with_the_vectors() {
    let vectors = vectors();
    let cases = vectors["digest"]["cases"].as_array().expect("cases");
    assert!(!cases.is_empty());
    for case in cases {
        let event = Event {
            identity: Identity {
                event_id: text(case, "event_id").parse().expect("a uuid"),
                tenant_id: TenantId::parse(text(case, "tenant_id")).expect("valid"),
                source: Source::parse(text(case, "source")).expect("valid"),
            },
            aggregate: aggregate(case),
            version: case["version"].as_i64(),
            previous_version: None,
            event_type: EventType::parse(text(case, "event_type")).expect("valid"),
            content_type: ContentType::parse(text(case, "content_type")).expect("valid"),
            payload: Bytes::from(hex::decode(text(case, "payload_hex")).expect("hex")),
            headers: Headers::new(),
            trace_context: TraceContext::default(),
            occurred_at: DateTime::UNIX_EPOCH,
        };
        assert_eq!(
            Digest::of(&event).to_string(),
            text(case, "digest"),
            "{case}"
        );
    }
}
