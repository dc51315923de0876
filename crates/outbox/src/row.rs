//! A claimed row: what is needed to settle it, and its event if it decodes.

use std::time::Duration;

use bytes::Bytes;
use event::{
    Aggregate, AggregateId, AggregateType, ContentType, Event, EventType, Headers, Identity,
    InvalidName, PoolName, Source, TenantId, TraceContext,
};
use serde_json::Value;
use tokio_postgres::Row;

use crate::error::OutboxError;
use crate::key::{EventKey, LaneKey};

/// The columns of whatever reads events, by their places: looking names up costs more than decoding.
/// A test holds that each statement has them there.
pub(crate) mod column {
    pub(crate) const EVENT_ID: usize = 0;
    pub(crate) const POSITION: usize = 1;
    pub(crate) const TENANT_ID: usize = 2;
    pub(crate) const SOURCE: usize = 3;
    pub(crate) const AGGREGATE_TYPE: usize = 4;
    pub(crate) const AGGREGATE_ID: usize = 5;
    pub(crate) const VERSION: usize = 6;
    pub(crate) const PREVIOUS_VERSION: usize = 7;
    pub(crate) const LANE: usize = 8;
    pub(crate) const EVENT_TYPE: usize = 9;
    pub(crate) const CONTENT_TYPE: usize = 10;
    pub(crate) const PAYLOAD: usize = 11;
    pub(crate) const HEADERS: usize = 12;
    pub(crate) const TRACE_CONTEXT: usize = 13;
    pub(crate) const OCCURRED_AT: usize = 14;
    // What only a claim reads.
    pub(crate) const PLACE: usize = 15;
    pub(crate) const POOL: usize = 16;
    pub(crate) const HAS_HOLDS: usize = 17;
    pub(crate) const IS_BLOCKED: usize = 18;
    pub(crate) const ATTEMPTS: usize = 19;
    pub(crate) const AGE: usize = 20;
    pub(crate) const REFUSED_FOR: usize = 21;
}

/// An event as it was claimed.
#[derive(Debug, Clone)]
pub struct ClaimedEvent {
    /// What names it.
    pub key: EventKey,
    /// Its lane.
    pub lane: LaneKey,
    /// The type and id of its aggregate, as the row has them.
    pub aggregate: (String, String),
    /// Its place in the lane.
    pub position: i64,
    /// Whether it is in its aggregate's order. A delayed event is not.
    pub is_ordered: bool,
    /// The pool it goes to.
    pub pool: PoolName,
    /// Answers so far that were its own fault.
    pub attempts: i64,
    /// How long ago its present run of refusals began.
    pub refused_for: Option<Duration>,
    /// How long ago it was recorded.
    pub age: Duration,
    /// The event itself.
    pub content: Result<Event, Undecodable>,
}

/// Why a row is not an event. It is parked alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the row does not decode: {0}")]
pub struct Undecodable(pub String);

impl From<InvalidName> for Undecodable {
    fn from(error: InvalidName) -> Self {
        Self(error.to_string())
    }
}

impl From<tokio_postgres::Error> for Undecodable {
    fn from(error: tokio_postgres::Error) -> Self {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        Self(format!("{error}{}", cause.unwrap_or_default()))
    }
}

impl ClaimedEvent {
    /// Reads a row. What settling needs must be there; the rest may be broken.
    pub(crate) fn read(row: &Row) -> Result<Self, OutboxError> {
        let pool: &str = row.try_get(column::POOL)?;
        let seconds =
            |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
        let key = EventKey {
            event_id: row.try_get(column::EVENT_ID)?,
            tenant_id: row.try_get(column::TENANT_ID)?,
            source: row.try_get(column::SOURCE)?,
        };
        Ok(Self {
            lane: LaneKey {
                tenant_id: key.tenant_id.clone(),
                lane: row.try_get(column::LANE)?,
            },
            key,
            aggregate: (
                row.try_get(column::AGGREGATE_TYPE)?,
                row.try_get(column::AGGREGATE_ID)?,
            ),
            position: row.try_get(column::POSITION)?,
            is_ordered: row.try_get::<_, Option<i64>>(column::VERSION)?.is_some(),
            pool: PoolName::parse(pool).map_err(|error| OutboxError::Shape(error.to_string()))?,
            attempts: row.try_get(column::ATTEMPTS)?,
            refused_for: row
                .try_get::<_, Option<f64>>(column::REFUSED_FOR)?
                .map(seconds),
            age: row
                .try_get::<_, Option<f64>>(column::AGE)?
                .map(seconds)
                .unwrap_or_default(),
            content: event_of(row),
        })
    }
}

/// The event of a row whose first columns are, in this order: `event_id`, `position`, `tenant_id`,
/// `source`, `aggregate_type`, `aggregate_id`, `version`, `previous_version`, `lane`, `event_type`,
/// `content_type`, `payload`, `headers`, `trace_context`, `occurred_at`.
///
/// # Errors
/// [`Undecodable`] says what of it is not what it should be.
pub fn event_of(row: &Row) -> Result<Event, Undecodable> {
    Ok(Event {
        identity: Identity {
            event_id: row.try_get(column::EVENT_ID)?,
            tenant_id: TenantId::parse(row.try_get(column::TENANT_ID)?)?,
            source: Source::parse(row.try_get(column::SOURCE)?)?,
        },
        aggregate: Aggregate {
            aggregate_type: AggregateType::parse(row.try_get(column::AGGREGATE_TYPE)?)?,
            aggregate_id: AggregateId::parse(row.try_get(column::AGGREGATE_ID)?)?,
        },
        version: row.try_get(column::VERSION)?,
        previous_version: row.try_get(column::PREVIOUS_VERSION)?,
        event_type: EventType::parse(row.try_get(column::EVENT_TYPE)?)?,
        content_type: ContentType::parse(row.try_get(column::CONTENT_TYPE)?)?,
        payload: Bytes::from(row.try_get::<_, Vec<u8>>(column::PAYLOAD)?),
        headers: headers_of(row.try_get(column::HEADERS)?)?,
        trace_context: trace_context_of(row.try_get(column::TRACE_CONTEXT)?)?,
        occurred_at: row.try_get(column::OCCURRED_AT)?,
    })
}

fn headers_of(value: Value) -> Result<Headers, Undecodable> {
    let Value::Object(fields) = value else {
        return Err(Undecodable("headers are not an object".to_owned()));
    };
    let mut headers = Headers::new();
    for (name, value) in fields {
        let Value::String(value) = value else {
            let name: String = name.chars().take(80).collect();
            return Err(Undecodable(format!("header {name:?} is not text")));
        };
        headers.insert(name, value);
    }
    Ok(headers)
}

fn trace_context_of(value: Value) -> Result<TraceContext, Undecodable> {
    let mut fields = headers_of(value)?;
    Ok(TraceContext {
        traceparent: fields.remove("traceparent"),
        tracestate: fields.remove("tracestate"),
    })
}
