//! What the producer sees to beside requests: whether the database answers, and old keys.

use std::time::Duration;

use runtime::database::{Database, DatabaseError};
use runtime::readiness::Condition;
use tokio_util::sync::CancellationToken;

use crate::metrics;

const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Missing so many probes is no progress.
pub(crate) const PROBE_VALID_FOR: Duration = Duration::from_secs(10);
const PROBE_WITHIN: Duration = Duration::from_secs(3);
const FORGET_EVERY: Duration = Duration::from_secs(30);
/// Small enough to hold its locks for milliseconds.
const FORGET_AT_ONCE: i32 = 1000;

/// Says every second whether a transaction can be made through the pool that requests use.
pub(crate) async fn probe(
    database: Database,
    condition: Condition,
    shutdown: CancellationToken,
) -> Result<(), DatabaseError> {
    let mut ticks = tokio::time::interval(PROBE_EVERY);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            _ = ticks.tick() => {}
        }
        let probed = database.transaction(PROBE_WITHIN, async |transaction| {
            transaction.batch_execute("select 1").await?;
            Ok::<_, DatabaseError>(())
        });
        match probed.await {
            Ok(()) => condition.holds(),
            Err(error) => condition.fails(error.to_string()),
        }
        let (in_use, size) = database.in_use();
        let gauge = |name, value: usize| {
            let value = u32::try_from(value).unwrap_or(u32::MAX);
            ::metrics::gauge!(name).set(f64::from(value));
        };
        gauge(metrics::POOL_IN_USE, in_use);
        gauge(metrics::POOL_SIZE, size);
    }
}

/// Deletes idempotency keys whose time is over, a few at a time.
pub(crate) async fn forget_keys(
    database: Database,
    retention: Duration,
    shutdown: CancellationToken,
) -> Result<(), DatabaseError> {
    loop {
        match forget_some(&database, retention).await {
            Ok(forgotten) => {
                ::metrics::counter!(metrics::FORGOTTEN).increment(forgotten);
                if forgotten == u64::from(FORGET_AT_ONCE.unsigned_abs()) {
                    continue;
                }
            }
            Err(error) => tracing::debug!(%error, "old idempotency keys stay for now"),
        }
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = tokio::time::sleep(FORGET_EVERY) => {}
        }
    }
}

async fn forget_some(database: &Database, retention: Duration) -> Result<u64, DatabaseError> {
    let within = database.config().statement_timeout;
    database
        .transaction(within, async |transaction| {
            let sql = include_str!("sql/forget_idempotency_keys.sql");
            let statement = transaction.prepare_cached(sql).await?;
            let seconds = retention.as_secs_f64();
            let row = transaction
                .query_one(&statement, &[&seconds, &FORGET_AT_ONCE])
                .await?;
            let count: i64 = row.try_get(0)?;
            Ok(u64::try_from(count).unwrap_or(0))
        })
        .await
}
