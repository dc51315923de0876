//! Parked events: those that a person has to look at, and which of them is meant.

use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::error::OutboxError;
use crate::key::{EventKey, LaneKey};
use crate::statement;

/// Which parked events are meant; everything left out is no condition.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParkedFilter<'a> {
    /// These.
    pub ids: Option<&'a [Uuid]>,
    /// Of this tenant.
    pub tenant_id: Option<&'a str>,
    /// With this text in their reason.
    pub reason: Option<&'a str>,
    /// Recorded at least so long ago.
    pub older_than: Option<Duration>,
    /// Recorded at most so long ago.
    pub newer_than: Option<Duration>,
    /// So many, the first recorded ones.
    pub limit: i64,
}

/// A parked event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedEvent {
    /// Which.
    pub key: EventKey,
    /// Its lane.
    pub lane: LaneKey,
    /// Why it is parked.
    pub reason: Option<String>,
}

/// The parked events that are meant.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn parked(
    transaction: &Transaction<'_>,
    filter: &ParkedFilter<'_>,
) -> Result<Vec<ParkedEvent>, OutboxError> {
    let seconds = |age: Option<Duration>| age.map(|age| age.as_secs_f64());
    let (older, newer) = (seconds(filter.older_than), seconds(filter.newer_than));
    let values: [&(dyn ToSql + Sync); 6] = [
        &filter.ids,
        &filter.tenant_id,
        &filter.reason,
        &older,
        &newer,
        &filter.limit,
    ];
    let rows = statement::rows(transaction, include_str!("sql/parked.sql"), &values).await?;
    let events = rows.iter().map(|row| {
        let tenant_id: String = row.try_get("tenant_id")?;
        Ok(ParkedEvent {
            key: EventKey {
                event_id: row.try_get("event_id")?,
                tenant_id: tenant_id.clone(),
                source: row.try_get("source")?,
            },
            lane: LaneKey {
                tenant_id,
                lane: row.try_get("lane")?,
            },
            reason: row.try_get("last_error")?,
        })
    });
    Ok(events.collect::<Result<_, tokio_postgres::Error>>()?)
}
