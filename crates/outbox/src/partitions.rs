//! Partitions of the outbox: a day each, made ahead, emptied and dropped when their time is over.
//!
//! Each step is one short transaction that gives up rather than wait for a lock. Two processes at it
//! at once do no harm.

use deadpool_postgres::Transaction;

use crate::error::OutboxError;
use crate::statement;

/// A step of the upkeep of partitions. Days are counted from today (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionStep {
    /// The partition of a day is to be there.
    Make(i32),
    /// A day is over: nothing in it is needed if nothing in it waits.
    Empty(i32),
    /// What was emptied can go.
    Drop(i32),
}

/// What has to be done so that there are partitions for `ahead` days and none older than
/// `retention_days`.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn partition_steps(
    transaction: &Transaction<'_>,
    ahead: i32,
    retention_days: i32,
) -> Result<Vec<PartitionStep>, OutboxError> {
    let rows = statement::rows(transaction, include_str!("sql/partitions.sql"), &[]).await?;
    let mut days = Vec::with_capacity(rows.len());
    for row in &rows {
        days.push(row.try_get::<_, i32>("days_from_today")?);
    }
    Ok(steps(&days, ahead, retention_days))
}

/// The missing days, then the old ones.
fn steps(days: &[i32], ahead: i32, retention_days: i32) -> Vec<PartitionStep> {
    let missing = (0..=ahead)
        .filter(|day| !days.contains(day))
        .map(PartitionStep::Make);
    let old = days.iter().filter(|day| **day < -retention_days);
    let gone = old.flat_map(|day| [PartitionStep::Empty(*day), PartitionStep::Drop(*day)]);
    missing.chain(gone).collect()
}

/// Does one step. False if it was done already, or cannot be done yet.
///
/// # Errors
/// [`OutboxError`] of the database; 55P03 if somebody had a lock.
pub async fn do_partition_step(
    transaction: &Transaction<'_>,
    step: PartitionStep,
) -> Result<bool, OutboxError> {
    let (text, day) = match step {
        PartitionStep::Make(day) => (include_str!("sql/make_partition.sql"), day),
        PartitionStep::Empty(day) => (include_str!("sql/truncate_partition.sql"), day),
        PartitionStep::Drop(day) => (include_str!("sql/drop_partition.sql"), day),
    };
    let rows = statement::rows(transaction, text, &[&day]).await?;
    Ok(rows.first().map_or(Ok(false), |row| row.try_get(0))?)
}

#[cfg(test)]
mod tests {
    use super::PartitionStep::{Drop, Empty, Make};
    use super::*;

    #[test]
    fn missing_days_are_made_and_old_ones_go() {
        assert_eq!(
            steps(&[-16, -15, -14, -1, 0, 1], 3, 14),
            [
                Make(2),
                Make(3),
                Empty(-16),
                Drop(-16),
                Empty(-15),
                Drop(-15)
            ]
        );
        assert_eq!(steps(&[0, 1, 2], 2, 1), []);
    }
}
