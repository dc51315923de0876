//! Redrive: parked events are sent round again, with their ids and in their order.

use std::collections::BTreeSet;
use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::error::OutboxError;
use crate::key::{EventKey, LaneKey, arrays};
use crate::parked::ParkedEvent;
use crate::statement;

/// Makes these events pending again, due one after the other within `stagger`. The head of an
/// aggregate is let go when it is due, another one when its turn comes. One that is no longer
/// parked is left alone: two redrives at once do it once.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn redrive(
    transaction: &Transaction<'_>,
    events: &[ParkedEvent],
    stagger: Duration,
) -> Result<Vec<EventKey>, OutboxError> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    lock(transaction, events.iter().map(|event| &event.lane)).await?;
    let ids: Vec<Uuid> = events.iter().map(|event| event.key.event_id).collect();
    let tenants: Vec<&str> = events.iter().map(|event| &*event.key.tenant_id).collect();
    let sources: Vec<&str> = events.iter().map(|event| &*event.key.source).collect();
    let (least, most) = (ids.iter().min(), ids.iter().max());
    let values: [&(dyn ToSql + Sync); 6] = [
        &ids,
        &tenants,
        &sources,
        &least,
        &most,
        &stagger.as_secs_f64(),
    ];
    let rows = statement::rows(transaction, include_str!("sql/redrive.sql"), &values).await?;
    let redriven = rows.iter().map(|row| {
        Ok(EventKey {
            event_id: row.try_get("event_id")?,
            tenant_id: row.try_get("tenant_id")?,
            source: row.try_get("source")?,
        })
    });
    Ok(redriven.collect::<Result<_, tokio_postgres::Error>>()?)
}

/// Locks lanes, waiting for whoever is changing them. What they hold is to be read in a later
/// statement.
pub(crate) async fn lock<'a>(
    transaction: &Transaction<'_>,
    lanes: impl Iterator<Item = &'a LaneKey>,
) -> Result<(), OutboxError> {
    let lanes: BTreeSet<&LaneKey> = lanes.collect();
    let (tenants, numbers) = arrays(lanes);
    let text = include_str!("sql/lock_any_lanes.sql");
    statement::rows(transaction, text, &[&tenants, &numbers]).await?;
    Ok(())
}
