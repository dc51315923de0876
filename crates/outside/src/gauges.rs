//! Gauges read from the database, now and then: counting a long backlog is not free.

use std::time::Duration;

use runtime::database::{Database, DatabaseError};
use tokio_util::sync::CancellationToken;

use crate::claim::DEADLINE;
use crate::measures::{OLDEST_DUE, TASKS};

const EVERY: Duration = Duration::from_secs(15);

/// Sets them until stopped. Where the database is away the last values stay.
pub(crate) async fn keep(
    database: Database,
    shutdown: CancellationToken,
) -> Result<(), DatabaseError> {
    loop {
        if let Err(error) = read(&database).await {
            tracing::debug!(%error, "gauges of outside tasks not read");
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}

async fn read(database: &Database) -> Result<(), DatabaseError> {
    let rows = database.transaction(DEADLINE, async |transaction| {
        let gauges = transaction
            .prepare_cached(include_str!("sql/gauges.sql"))
            .await?;
        let rows = transaction.query(&gauges, &[]).await?;
        Ok::<_, DatabaseError>(rows)
    });
    let mut tasks = [
        ("pending", 0),
        ("sending", 0),
        ("unknown", 0),
        ("parked", 0),
    ];
    let mut oldest: f64 = 0.0;
    for row in rows.await? {
        let (status, count): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
        for (name, number) in &mut tasks {
            if *name == status {
                *number = count;
            }
        }
        oldest = row.try_get::<_, Option<f64>>(2)?.unwrap_or(oldest);
    }
    for (status, count) in tasks {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        metrics::gauge!(TASKS, "status" => status).set(f64::from(count));
    }
    metrics::gauge!(OLDEST_DUE).set(oldest);
    Ok(())
}
