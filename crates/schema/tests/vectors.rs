//! Lane and digest in SQL agree with the published test vectors.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use serde_json::Value;
use uuid::Uuid;

fn cases(part: &str) -> Vec<Value> {
    let text = include_str!("../../event/tests/vectors.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    let cases = vectors[part]["cases"].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
}

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().expect(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_agree_with_the_vectors() {
    let site = sandbox::shared()
        .await
        .unwrap()
        .site("lanes")
        .await
        .unwrap();
    let client = site.database().await.unwrap();
    for case in cases("lane") {
        let values = ["tenant_id", "aggregate_type", "aggregate_id"].map(|name| text(&case, name));
        let call = "select ticketflow.lane_of($1, $2, $3)";
        let row = client
            .query_one(call, &[&values[0], &values[1], &values[2]])
            .await;
        let lane: i16 = row.unwrap().get(0);
        assert_eq!(Some(i64::from(lane)), case["lane"].as_i64(), "{case}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn digests_agree_with_the_vectors() {
    let site = sandbox::shared()
        .await
        .unwrap()
        .site("digests")
        .await
        .unwrap();
    let client = site.database().await.unwrap();
    for case in cases("digest") {
        let id: Uuid = text(&case, "event_id").parse().unwrap();
        let payload = hex::decode(text(&case, "payload_hex")).unwrap();
        let names = [
            "tenant_id",
            "source",
            "aggregate_type",
            "aggregate_id",
            "event_type",
            "content_type",
        ];
        let [tenant, source, kind, aggregate, event_type, content_type] =
            names.map(|name| text(&case, name));
        let call = "select ticketflow.event_digest($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let version = case["version"].as_i64();
        let row = client
            .query_one(
                call,
                &[
                    &id,
                    &tenant,
                    &source,
                    &kind,
                    &aggregate,
                    &version,
                    &event_type,
                    &content_type,
                    &payload,
                ],
            )
            .await
            .unwrap();
        let digest: Vec<u8> = row.get(0);
        assert_eq!(
            Some(hex::encode(digest).as_str()),
            case["digest"].as_str(),
            "{case}"
        );
    }
}
