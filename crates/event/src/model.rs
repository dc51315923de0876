//! The event itself, before and after it is recorded.

use std::collections::BTreeMap;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::lane::Lane;
use crate::names::{
    AggregateId, AggregateType, ContentType, EventType, InvalidName, Source, TenantId,
};

/// What makes an event the same event: its id within a tenant and a source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// A `UUIDv7` that never changes, whatever is retried or replayed.
    pub event_id: Uuid,
    /// The tenant the event belongs to.
    pub tenant_id: TenantId,
    /// The system that recorded it.
    pub source: Source,
}

/// What an event is about, and the unit of order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Aggregate {
    /// The kind of thing.
    pub aggregate_type: AggregateType,
    /// Which one.
    pub aggregate_id: AggregateId,
}

/// Caller-given headers by name. They travel under the prefix `h-` only.
pub type Headers = BTreeMap<String, String>;

/// W3C trace context, passed on as it was given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// The `traceparent` header.
    pub traceparent: Option<String>,
    /// The `tracestate` header.
    pub tracestate: Option<String>,
}

/// An event to be recorded. The database draws what is left out.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// The tenant it belongs to; it must exist.
    pub tenant_id: TenantId,
    /// What it is about.
    pub aggregate: Aggregate,
    /// What happened.
    pub event_type: EventType,
    /// The bytes the consumer gets.
    pub payload: Bytes,
    /// The payload's media type.
    pub content_type: ContentType,
    /// The recording system.
    pub source: Source,
    /// The aggregate's version after this event; the next one when left out.
    pub version: Option<i64>,
    /// Caller-given headers.
    pub headers: Headers,
    /// Trace context of the request behind it.
    pub trace_context: TraceContext,
    /// When it may be published, for a delayed event: outside the aggregate's order.
    pub available_at: Option<DateTime<Utc>>,
    /// An id made once before a retry loop; drawn by the database when left out.
    pub event_id: Option<Uuid>,
}

impl NewEvent {
    /// A JSON event with every optional part left out.
    ///
    /// # Errors
    /// [`InvalidName`] if one of the names breaks its rule.
    pub fn json(
        tenant_id: &str,
        (aggregate_type, aggregate_id): (&str, &str),
        event_type: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Self, InvalidName> {
        Ok(Self {
            tenant_id: TenantId::parse(tenant_id)?,
            aggregate: Aggregate {
                aggregate_type: AggregateType::parse(aggregate_type)?,
                aggregate_id: AggregateId::parse(aggregate_id)?,
            },
            event_type: EventType::parse(event_type)?,
            payload: payload.into(),
            content_type: ContentType::parse("application/json")?,
            source: Source::parse("ticketflow")?,
            version: None,
            headers: Headers::new(),
            trace_context: TraceContext::default(),
            available_at: None,
            event_id: None,
        })
    }
}

/// A recorded event, as stored and as read from a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What makes it this event.
    pub identity: Identity,
    /// What it is about.
    pub aggregate: Aggregate,
    /// The aggregate's version after it; none for a delayed event.
    pub version: Option<i64>,
    /// The aggregate's version before it; 0 for the first, none for a delayed event.
    pub previous_version: Option<i64>,
    /// What happened.
    pub event_type: EventType,
    /// The payload's media type.
    pub content_type: ContentType,
    /// The bytes the caller gave.
    pub payload: Bytes,
    /// Caller-given headers.
    pub headers: Headers,
    /// Trace context of the request behind it.
    pub trace_context: TraceContext,
    /// When it was recorded, to the microsecond, by the database's clock.
    pub occurred_at: DateTime<Utc>,
}

impl Event {
    /// The lane the event belongs to.
    #[must_use]
    pub fn lane(&self) -> Lane {
        Lane::of(&self.identity.tenant_id, &self.aggregate)
    }
}
