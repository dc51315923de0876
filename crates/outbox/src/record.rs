//! Recording: an event becomes part of the caller's own transaction.
//!
//! There is no other way to get one in: a function that takes a transaction cannot be called
//! beside it. What happens to the transaction happens to the event.

use chrono::{DateTime, Utc};
use event::NewEvent;
use serde_json::{Map, Value};
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// The constraint that a repeated identity with other content breaks.
const IDENTITY: &str = "outbox_events_identity";
/// The constraint that an unknown tenant breaks.
const TENANT: &str = "outbox_events_tenant";

/// Why an event was not recorded. The transaction is spent: roll it back.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The event breaks a rule: another event would be taken.
    #[error("{message}; {rule}")]
    Invalid {
        /// What is wrong.
        message: String,
        /// The rule.
        rule: String,
    },
    /// The tenant is not known, or is not the session's own.
    #[error("{0}")]
    Tenant(String),
    /// The event id names another event already: a bug of the caller, not a retry.
    #[error("{0}")]
    Identity(String),
    /// The database; see the source for what helps.
    #[error("the event could not be recorded")]
    Database(#[source] tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for RecordError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(server) = error.as_db_error() else {
            return Self::Database(error);
        };
        let message = server.message().to_owned();
        match (server.code().code(), server.constraint()) {
            ("23505", Some(IDENTITY)) => Self::Identity(message),
            ("23503", Some(TENANT)) | ("42501", _) => Self::Tenant(message),
            ("22023" | "2202E", _) => Self::Invalid {
                message,
                rule: server.hint().unwrap_or_default().to_owned(),
            },
            _ => Self::Database(error),
        }
    }
}

/// Records an event. Without an id of its own it gets one; with an id that was recorded before,
/// with the same content, nothing changes and that id is returned: so a retry is harmless.
///
/// One round trip, and no statement is left prepared: it works behind a transaction pooler.
///
/// # Errors
/// [`RecordError`] says which remedy helps.
pub async fn record(transaction: &Transaction<'_>, event: &NewEvent) -> Result<Uuid, RecordError> {
    let rows = transaction
        .query_typed(
            include_str!("sql/record_event.sql"),
            &[
                (&event.tenant_id.as_str(), Type::TEXT),
                (&event.aggregate.aggregate_type.as_str(), Type::TEXT),
                (&event.aggregate.aggregate_id.as_str(), Type::TEXT),
                (&event.event_type.as_str(), Type::TEXT),
                (&event.payload.as_ref(), Type::BYTEA),
                (&event.content_type.as_str(), Type::TEXT),
                (&event.source.as_str(), Type::TEXT),
                (&event.version, Type::INT8),
                (&headers(event), Type::JSONB),
                (&trace_context(event), Type::JSONB),
                (&event.available_at, Type::TIMESTAMPTZ),
                (&event.event_id, Type::UUID),
            ],
        )
        .await?;
    let row = rows.first().map(|row| row.try_get(0));
    Ok(row.transpose()?.unwrap_or_default())
}

/// Records many events in one round trip and gives their ids in the same order. Their aggregates
/// are locked in key order first, so that two callers never wait for each other in a circle.
///
/// # Errors
/// [`RecordError`] of the first event that is refused; then none is recorded.
pub async fn record_all(
    transaction: &Transaction<'_>,
    events: &[NewEvent],
) -> Result<Vec<Uuid>, RecordError> {
    let text = |of: fn(&NewEvent) -> &str| events.iter().map(of).collect::<Vec<&str>>();
    let versions: Vec<Option<i64>> = events.iter().map(|event| event.version).collect();
    let available: Vec<Option<DateTime<Utc>>> =
        events.iter().map(|event| event.available_at).collect();
    let ids: Vec<Option<Uuid>> = events.iter().map(|event| event.event_id).collect();
    let payloads: Vec<&[u8]> = events.iter().map(|event| event.payload.as_ref()).collect();
    let headers: Vec<Value> = events.iter().map(headers).collect();
    let traces: Vec<Value> = events.iter().map(trace_context).collect();
    let rows = transaction
        .query_typed(
            include_str!("sql/record_events.sql"),
            &[
                (&text(|event| event.tenant_id.as_str()), Type::TEXT_ARRAY),
                (
                    &text(|event| event.aggregate.aggregate_type.as_str()),
                    Type::TEXT_ARRAY,
                ),
                (
                    &text(|event| event.aggregate.aggregate_id.as_str()),
                    Type::TEXT_ARRAY,
                ),
                (&text(|event| event.event_type.as_str()), Type::TEXT_ARRAY),
                (&payloads, Type::BYTEA_ARRAY),
                (&text(|event| event.content_type.as_str()), Type::TEXT_ARRAY),
                (&text(|event| event.source.as_str()), Type::TEXT_ARRAY),
                (&versions, Type::INT8_ARRAY),
                (&headers, Type::JSONB_ARRAY),
                (&traces, Type::JSONB_ARRAY),
                (&available, Type::TIMESTAMPTZ_ARRAY),
                (&ids, Type::UUID_ARRAY),
            ],
        )
        .await?;
    let row = rows.first().map(|row| row.try_get(0));
    Ok(row.transpose()?.unwrap_or_default())
}

fn headers(event: &NewEvent) -> Value {
    let named = event.headers.iter();
    Value::Object(
        named
            .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
            .collect(),
    )
}

fn trace_context(event: &NewEvent) -> Value {
    let context = &event.trace_context;
    let named = [
        ("traceparent", &context.traceparent),
        ("tracestate", &context.tracestate),
    ];
    let given = named
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Value::from(value.as_deref()?))));
    Value::Object(Map::from_iter(given))
}
