//! What a webhook carries: JSON that is the same byte for byte in every request for a task, since
//! a provider may compare what comes under one key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::SecondsFormat;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::task::Task;

#[derive(Serialize)]
struct Body<'a> {
    r#type: &'a str,
    timestamp: String,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    task_id: Uuid,
    tenant_id: &'a str,
    ticket_id: Uuid,
    event_id: Uuid,
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

/// The body of the request. A payload that is JSON goes in as it is, anything else as Base64.
pub(super) fn of(task: &Task) -> serde_json::Result<Vec<u8>> {
    let payload = serde_json::from_slice::<&RawValue>(&task.payload).ok();
    let other = payload.is_none() && !task.payload.is_empty();
    serde_json::to_vec(&Body {
        r#type: &task.task_type,
        timestamp: task.created_at.to_rfc3339_opts(SecondsFormat::Micros, true),
        data: Data {
            task_id: task.task_id,
            tenant_id: &task.tenant_id,
            ticket_id: task.ticket_id,
            event_id: task.event_id,
            source: &task.source,
            payload,
            payload_base64: other.then(|| STANDARD.encode(&task.payload)),
        },
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use chrono::DateTime;
    use tokio::time::Instant;

    use super::*;

    fn task(payload: &'static [u8]) -> Task {
        let created_at = DateTime::from_timestamp_micros(1_796_069_700_123_456).expect("a time");
        Task {
            task_id: Uuid::from_u128(1),
            tenant_id: "acme".to_owned(),
            ticket_id: Uuid::from_u128(2),
            event_id: Uuid::from_u128(3),
            source: "ticketflow".to_owned(),
            task_type: "ticket.created".to_owned(),
            payload: Bytes::from_static(payload),
            created_at,
            attempts: 1,
            in_doubt: false,
            claimed_at: created_at,
            claimed: Instant::now(),
        }
    }

    fn text(payload: &'static [u8]) -> String {
        String::from_utf8(of(&task(payload)).expect("a body")).expect("UTF-8")
    }

    #[test]
    fn a_payload_of_json_travels_byte_for_byte() {
        let told = text(br#"{"z":1.10,"big":12345678901234567890123,"a":[1e2]}"#);
        assert_eq!(
            told,
            concat!(
                r#"{"type":"ticket.created","timestamp":"2026-11-30T20:15:00.123456Z","data":{"#,
                r#""task_id":"00000000-0000-0000-0000-000000000001","tenant_id":"acme","#,
                r#""ticket_id":"00000000-0000-0000-0000-000000000002","#,
                r#""event_id":"00000000-0000-0000-0000-000000000003","source":"ticketflow","#,
                r#""payload":{"z":1.10,"big":12345678901234567890123,"a":[1e2]}}}"#
            )
        );
    }

    #[test]
    fn any_other_payload_travels_as_base64() {
        assert!(text(b"\xff\x00").contains(r#""payload_base64":"/wA=""#));
        assert!(!text(b"").contains("payload"));
    }

    #[test]
    fn a_later_try_says_the_same() {
        let mut later = task(b"{}");
        later.attempts = 7;
        later.in_doubt = true;
        assert_eq!(
            of(&later).expect("a body"),
            of(&task(b"{}")).expect("a body")
        );
    }
}
