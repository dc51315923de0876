//! Repair: held events without a hold would wait for ever. Nothing is known to make them; `doctor`
//! looks for them all the same.

use deadpool_postgres::Transaction;

use crate::error::OutboxError;
use crate::key::LaneKey;
use crate::redrive::lock;
use crate::statement;

/// Gives each aggregate whose held events have no hold one that is due. Answers how many.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn repair_holds(transaction: &Transaction<'_>) -> Result<u64, OutboxError> {
    let text = include_str!("sql/repair_lanes.sql");
    let rows = statement::rows(transaction, text, &[]).await?;
    let lanes = rows.iter().map(|row| {
        Ok(LaneKey {
            tenant_id: row.try_get("tenant_id")?,
            lane: row.try_get("lane")?,
        })
    });
    let lanes: Vec<LaneKey> = lanes.collect::<Result<_, tokio_postgres::Error>>()?;
    lock(transaction, lanes.iter()).await?;
    let text = include_str!("sql/repair_holds.sql");
    Ok(statement::changed(transaction, text, &[]).await?)
}
