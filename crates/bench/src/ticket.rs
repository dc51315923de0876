//! The payload of a ticket event, as the producer would write it, of a wanted size.

use bytes::Bytes;
use event::{
    Aggregate, AggregateId, AggregateType, ContentType, Event, EventType, Headers, Identity,
    Source, TenantId, TraceContext,
};
use uuid::Uuid;

/// The body of a ticket event, filled to `bytes`.
#[must_use]
pub fn payload(tenant: &str, ticket: &str, version: i64, bytes: usize) -> Vec<u8> {
    let head = format!(
        r#"{{"event_type":"ticket.updated","ticket":{{"tenant_id":"{tenant}","ticket_id":"{ticket}","version":{version},"subject":"Ticket {ticket}","body":""#
    );
    let tail = r#"","status":"open","priority":"normal","assignee":null,"created_at":"2026-01-01T00:00:00.000000Z","updated_at":"2026-01-01T00:00:00.000000Z"},"payload":null}"#;
    let fill = bytes.saturating_sub(head.len() + tail.len());
    let mut payload = head.into_bytes();
    payload.extend(b"lorem ipsum dolor sit amet ".iter().cycle().take(fill));
    payload.extend_from_slice(tail.as_bytes());
    payload
}

/// The first event of a new ticket.
///
/// # Errors
/// If the tenant's name is not valid.
pub fn event(tenant: &str, bytes: usize) -> anyhow::Result<Event> {
    let ticket = Uuid::now_v7().to_string();
    Ok(Event {
        identity: Identity {
            event_id: Uuid::now_v7(),
            tenant_id: TenantId::parse(tenant)?,
            source: Source::parse("ticketflow")?,
        },
        payload: Bytes::from(payload(tenant, &ticket, 1, bytes)),
        aggregate: Aggregate {
            aggregate_type: AggregateType::parse("ticket")?,
            aggregate_id: AggregateId::parse(&ticket)?,
        },
        version: Some(1),
        previous_version: Some(0),
        event_type: EventType::parse("ticket.updated")?,
        content_type: ContentType::parse("application/json")?,
        headers: Headers::new(),
        trace_context: TraceContext::default(),
        occurred_at: chrono::Utc::now(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_json_of_the_size_asked_for() {
        let bytes = payload("acme", &Uuid::nil().to_string(), 3, 500);
        assert_eq!(bytes.len(), 500);
        let value: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(value["ticket"]["version"], 3);
        assert_eq!(value["ticket"]["tenant_id"], "acme");
    }
}
