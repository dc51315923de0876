//! Housekeeping: partitions made ahead and taken away. Two processes at it at once do no harm.

use std::time::Duration;

use outbox::PartitionStep;
use runtime::database::Database;
use runtime::start::told;
use tokio_util::sync::CancellationToken;

use crate::metrics;
use crate::store::StoreError;

/// Days for which partitions are made ahead.
const AHEAD: i32 = 14;
const EVERY: Duration = Duration::from_secs(600);
/// A step that met a lock is tried again, before producers notice that anything is missing.
const AGAIN: Duration = Duration::from_secs(20);
const DEADLINE: Duration = Duration::from_secs(10);

/// Keeps the partitions until stopped.
pub(crate) async fn keep(database: Database, retention_days: i32, stop: CancellationToken) {
    let keeping = async {
        loop {
            let wait = match keep_once(&database, retention_days).await {
                Ok(true) => EVERY,
                Ok(false) => AGAIN,
                Err(error) => {
                    tracing::warn!(error = told(&error), "partitions could not be looked at");
                    AGAIN
                }
            };
            tokio::time::sleep(wait).await;
        }
    };
    stop.run_until_cancelled(keeping).await;
}

/// One round. False if a step has to be tried again.
async fn keep_once(database: &Database, retention_days: i32) -> Result<bool, StoreError> {
    let steps = database
        .transaction(DEADLINE, async |transaction| {
            Ok::<_, StoreError>(outbox::partition_steps(transaction, AHEAD, retention_days).await?)
        })
        .await?;
    let mut missing = 0;
    let mut is_complete = true;
    for step in steps {
        let done = database
            .transaction(DEADLINE, async |transaction| {
                Ok::<_, StoreError>(outbox::do_partition_step(transaction, step).await?)
            })
            .await;
        match done {
            Ok(done) => tracing::info!(?step, done, "partition"),
            Err(error) => {
                is_complete = false;
                missing += i32::from(matches!(step, PartitionStep::Make(_)));
                tracing::info!(?step, error = told(&error), "partition: trying again later");
            }
        }
    }
    metrics::partitions_ahead(AHEAD + 1 - missing);
    Ok(is_complete)
}
