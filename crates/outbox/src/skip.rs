//! Skip: an event is given up, and what waits behind it goes on. It does not recall: a copy that is
//! on its way may still arrive.

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::error::OutboxError;
use crate::feed::{DoneHead, feed};
use crate::key::{EventKey, LaneKey};
use crate::redrive::lock;
use crate::statement;

/// What became of a skip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skipped {
    /// Given up.
    Done,
    /// There is no such event.
    Missing,
    /// It is neither parked nor waits for another try: it is published by itself.
    NotWaiting {
        /// The state it is in.
        state: String,
    },
}

/// Gives up an event that is parked, or that waits as the head of its aggregate for another try.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn skip(transaction: &Transaction<'_>, event: &EventKey) -> Result<Skipped, OutboxError> {
    let key: [&(dyn ToSql + Sync); 3] = [&event.event_id, &event.tenant_id, &event.source];
    let found = statement::rows(transaction, include_str!("sql/skip_find.sql"), &key).await?;
    let Some(row) = found.first() else {
        return Ok(Skipped::Missing);
    };
    let lane = LaneKey {
        tenant_id: event.tenant_id.clone(),
        lane: row.try_get("lane")?,
    };
    lock(transaction, std::iter::once(&lane)).await?;
    // Later, under the lock: what was found may have been settled in between.
    let found = statement::rows(transaction, include_str!("sql/skip_find.sql"), &key).await?;
    let Some(row) = found.first() else {
        return Ok(Skipped::Missing);
    };
    let is_head: bool = row.try_get("is_head")?;
    let state: String = row.try_get("state")?;
    let waits = state == "parked" || (state == "pending" && is_head);
    if !waits {
        return Ok(Skipped::NotWaiting { state });
    }
    statement::changed(transaction, include_str!("sql/skip.sql"), &key).await?;
    if is_head {
        let aggregate_type: String = row.try_get("aggregate_type")?;
        let aggregate_id: String = row.try_get("aggregate_id")?;
        let head = DoneHead {
            tenant_id: &event.tenant_id,
            aggregate_type: &aggregate_type,
            aggregate_id: &aggregate_id,
            position: row.try_get("position")?,
        };
        feed(transaction, &[head]).await?;
    }
    Ok(Skipped::Done)
}
