//! The backlog, read from the tables: what is recorded and not yet settled.

use std::time::Duration;

use deadpool_postgres::Transaction;
use event::PoolName;

use crate::error::OutboxError;
use crate::pools::names;
use crate::statement;

/// Counts stop here.
const MOST: i64 = 1_000_000;

/// Most lanes whose oldest event is looked at.
const LANES: i32 = 2_000;

/// Counts of events by what they wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Pending, and nothing in its way.
    pub claimable: i64,
    /// Delayed by its caller, or refused while delayed.
    pub delayed: i64,
    /// Waiting for the head of its aggregate, or being that head and waiting to be tried again.
    pub held: i64,
    /// Waiting for a person.
    pub parked: i64,
    /// Aggregates with a waiting head.
    pub held_aggregates: i64,
    /// By how many transactions the oldest one that writes lags behind.
    pub snapshot_lag: i64,
}

/// Counts the backlog.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn backlog(transaction: &Transaction<'_>) -> Result<Backlog, OutboxError> {
    let rows = statement::rows(transaction, include_str!("sql/backlog.sql"), &[&MOST]).await?;
    let Some(row) = rows.first() else {
        return Ok(Backlog::default());
    };
    Ok(Backlog {
        claimable: row.try_get("claimable")?,
        delayed: row.try_get("delayed")?,
        held: row.try_get("held")?,
        parked: row.try_get("parked")?,
        held_aggregates: row.try_get("held_aggregates")?,
        snapshot_lag: row.try_get("snapshot_lag")?,
    })
}

/// How long the oldest event waits that could be claimed, in these pools or in all; zero if there
/// is none.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn oldest_due(
    transaction: &Transaction<'_>,
    pools: Option<&[PoolName]>,
) -> Result<Duration, OutboxError> {
    let pools = pools.map(names);
    let text = include_str!("sql/oldest_due.sql");
    let rows = statement::rows(transaction, text, &[&pools, &LANES]).await?;
    let seconds: Option<f64> = rows.first().map_or(Ok(None), |row| row.try_get(0))?;
    Ok(Duration::try_from_secs_f64(seconds.unwrap_or(0.0).max(0.0)).unwrap_or_default())
}
