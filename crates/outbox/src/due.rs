//! The second walk beside the claim's: heads whose wait is over, and delayed events that are due.

use deadpool_postgres::Transaction;

use crate::error::OutboxError;
use crate::feed::{DoneHead, feed};
use crate::key::{LaneKey, arrays};
use crate::statement;

/// Most holds, and most delayed events, that one pass lets go.
const MOST: i64 = 500;

/// Lets go what is due. Answers how many lanes had something, so that a caller with many can go on.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn let_go_due(transaction: &Transaction<'_>) -> Result<usize, OutboxError> {
    let (set_up, due) = futures_util::future::join(
        statement::set_up(transaction),
        statement::rows(transaction, include_str!("sql/due_lanes.sql"), &[&MOST]),
    )
    .await;
    set_up?;
    let due = due?;
    if due.is_empty() {
        return Ok(0);
    }
    let mut wanted = Vec::with_capacity(due.len());
    for row in &due {
        wanted.push(LaneKey {
            tenant_id: row.try_get(0)?,
            lane: row.try_get(1)?,
        });
    }
    let (tenants, lanes) = arrays(&wanted);
    let text = include_str!("sql/take_lanes.sql");
    let locked = statement::rows(transaction, text, &[&tenants, &lanes]).await?;
    let mut tenants: Vec<&str> = Vec::with_capacity(locked.len());
    let mut lanes: Vec<i16> = Vec::with_capacity(locked.len());
    for row in &locked {
        tenants.push(row.try_get(0)?);
        lanes.push(row.try_get(1)?);
    }
    let text = include_str!("sql/let_go_heads.sql");
    let gone = statement::rows(transaction, text, &[&tenants, &lanes, &MOST]).await?;
    let mut heads = Vec::with_capacity(gone.len());
    for row in &gone {
        heads.push(DoneHead {
            tenant_id: row.try_get(0)?,
            aggregate_type: row.try_get(1)?,
            aggregate_id: row.try_get(2)?,
            position: row.try_get(3)?,
        });
    }
    feed(transaction, &heads).await?;
    let text = include_str!("sql/let_go_delayed.sql");
    statement::changed(transaction, text, &[&tenants, &lanes, &MOST]).await?;
    Ok(locked.len())
}
