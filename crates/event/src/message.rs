//! The message an event becomes: routing key, properties and headers as plain data.
//!
//! Headers follow `CloudEvents` 1.0, AMQP binary mode, with the prefix `cloudEvents:`
//! (<https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/amqp-protocol-binding.md>).

use bytes::Bytes;
use chrono::{Datelike as _, SecondsFormat};

use crate::lane::Lane;
use crate::limits::{HEADER_VALUE_BYTES, HEADERS_BYTES, NAME_BYTES, PAYLOAD_BYTES};
use crate::model::{Event, Headers, TraceContext};
use crate::names::{EffectName, EventType, HeaderName, PoolName, TenantId};

/// The topic exchange all events go through.
pub const EXCHANGE: &str = "ticketflow.events";

/// The direct exchange dead letters go through, by the name of the queue they come from.
pub const DEAD_EXCHANGE: &str = "ticketflow.dead";

/// The `app_id` of every message the relay publishes.
pub const APP_ID: &str = "ticketflow-relay";

/// The header of a replayed message that carries its original routing key.
pub const ROUTING_KEY_HEADER: &str = "ticketflow-routing-key";

/// The queue of one effect in one pool.
#[must_use]
pub fn queue_name(pool: &PoolName, effect: &EffectName) -> String {
    format!("ticketflow.{pool}.{effect}")
}

/// The queue that dead letters of a pool come to.
#[must_use]
pub fn dead_queue_name(pool: &PoolName) -> String {
    format!("ticketflow.{pool}.dead")
}

/// The routing key of an event: `<pool>.<lane>.<tenant>.<event type>`.
#[must_use]
pub fn routing_key(pool: &PoolName, lane: Lane, tenant: &TenantId, kind: &EventType) -> String {
    format!("{pool}.{:02}.{tenant}.{kind}", lane.number())
}

/// An event as it goes to the broker. Every part has been checked against the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The routing key on [`EXCHANGE`].
    pub routing_key: String,
    /// The event id, lower-case text.
    pub message_id: String,
    /// The `type` property: the event type.
    pub kind: String,
    /// Seconds since the epoch; the exact time is the header `cloudEvents:time`.
    pub timestamp: u64,
    /// The payload's media type.
    pub content_type: String,
    /// Header names and values; every value is text.
    pub headers: Vec<(String, String)>,
    /// The payload as recorded.
    pub body: Bytes,
}

/// Why a stored event can never be a message. Such an event is parked at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unpublishable {
    /// The payload is larger than [`PAYLOAD_BYTES`].
    #[error("the payload has {bytes} bytes, the limit is {PAYLOAD_BYTES}")]
    Payload {
        /// Its size.
        bytes: usize,
    },
    /// Headers and trace context together are larger than [`HEADERS_BYTES`].
    #[error("headers and trace context have {bytes} bytes, the limit is {HEADERS_BYTES}")]
    Headers {
        /// Their size, names and values.
        bytes: usize,
    },
    /// One header's name or value breaks its limit.
    #[error("header {name:?} breaks a limit: {rule}")]
    Header {
        /// The header's name, cut.
        name: String,
        /// What a header must be.
        rule: &'static str,
    },
    /// The event's time has a year that RFC 3339 cannot write.
    #[error("the event occurred in the year {year}, years are 1 to 9999")]
    Time {
        /// The year; 0 and below are before our era.
        year: i32,
    },
    /// The routing key would be longer than AMQP allows.
    #[error("the routing key has {bytes} bytes, the limit is {NAME_BYTES}")]
    RoutingKey {
        /// Its size.
        bytes: usize,
    },
}

impl Message {
    /// The message of an event for a pool.
    ///
    /// # Errors
    /// [`Unpublishable`] names the part that the broker or its client would choke on.
    pub fn of(event: &Event, pool: &PoolName) -> Result<Self, Unpublishable> {
        let routing_key = routing_key(
            pool,
            event.lane(),
            &event.identity.tenant_id,
            &event.event_type,
        );
        if routing_key.len() > NAME_BYTES {
            return Err(Unpublishable::RoutingKey {
                bytes: routing_key.len(),
            });
        }
        if event.payload.len() > PAYLOAD_BYTES {
            return Err(Unpublishable::Payload {
                bytes: event.payload.len(),
            });
        }
        let year = event.occurred_at.year();
        if !(1..=9999).contains(&year) {
            return Err(Unpublishable::Time { year });
        }
        check_headers(&event.headers, &event.trace_context)?;
        Ok(Self {
            routing_key,
            message_id: event.identity.event_id.hyphenated().to_string(),
            kind: event.event_type.to_string(),
            timestamp: u64::try_from(event.occurred_at.timestamp()).unwrap_or(0),
            content_type: event.content_type.to_string(),
            headers: headers_of(event),
            body: event.payload.clone(),
        })
    }

    /// Marks the message as one that goes to a single queue through the default exchange: its
    /// original routing key travels in [`ROUTING_KEY_HEADER`].
    #[must_use]
    pub fn readdressed(mut self, queue: &str) -> Self {
        let original = std::mem::replace(&mut self.routing_key, queue.to_owned());
        self.headers.push((ROUTING_KEY_HEADER.to_owned(), original));
        self
    }
}

fn headers_of(event: &Event) -> Vec<(String, String)> {
    let time = event
        .occurred_at
        .to_rfc3339_opts(SecondsFormat::Micros, true);
    let cloud = |name: &str, value: String| (format!("cloudEvents:{name}"), value);
    let mut headers = vec![
        cloud("specversion", "1.0".to_owned()),
        cloud("id", event.identity.event_id.hyphenated().to_string()),
        cloud("source", event.identity.source.to_string()),
        cloud("type", event.event_type.to_string()),
        cloud("time", time),
        cloud("subject", event.aggregate.aggregate_id.to_string()),
        cloud("tenantid", event.identity.tenant_id.to_string()),
        cloud("aggregatetype", event.aggregate.aggregate_type.to_string()),
    ];
    if let (Some(version), Some(previous)) = (event.version, event.previous_version) {
        headers.push(cloud("aggregateversion", version.to_string()));
        headers.push(cloud("aggregateprevious", previous.to_string()));
    }
    let trace = &event.trace_context;
    headers.extend(
        trace
            .traceparent
            .iter()
            .map(|v| ("traceparent".to_owned(), v.clone())),
    );
    headers.extend(
        trace
            .tracestate
            .iter()
            .map(|v| ("tracestate".to_owned(), v.clone())),
    );
    headers.extend(
        event
            .headers
            .iter()
            .map(|(name, value)| (format!("h-{name}"), value.clone())),
    );
    headers
}

fn check_headers(headers: &Headers, trace: &TraceContext) -> Result<(), Unpublishable> {
    let named = headers.iter().map(|(name, value)| (name.as_str(), value));
    let traced = [
        ("traceparent", &trace.traceparent),
        ("tracestate", &trace.tracestate),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.as_ref().map(|value| (name, value)));
    let mut bytes = 0;
    for (name, value) in named.chain(traced) {
        let refused = |rule| {
            let name = name.chars().take(80).collect();
            Err(Unpublishable::Header { name, rule })
        };
        if let Err(invalid) = HeaderName::parse(name) {
            return refused(invalid.rule);
        }
        if value.len() > HEADER_VALUE_BYTES {
            return refused("a value has at most 4096 bytes");
        }
        bytes += name.len() + value.len();
    }
    if bytes > HEADERS_BYTES {
        return Err(Unpublishable::Headers { bytes });
    }
    Ok(())
}
