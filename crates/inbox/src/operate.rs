//! What an operator does with parked deliveries: send them round again, give them up, drop what can
//! never be applied. Each changes only rows it has locked and still finds parked.

use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::failure::InboxError;

/// Which parked deliveries are meant; everything left out is no condition.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParkedFilter<'a> {
    /// These.
    pub ids: Option<&'a [i64]>,
    /// Of this tenant.
    pub tenant_id: Option<&'a str>,
    /// Of this effect.
    pub effect: Option<&'a str>,
    /// With this text in their reason or its detail.
    pub reason: Option<&'a str>,
    /// Received at least so long ago.
    pub older_than: Option<Duration>,
    /// Received at most so long ago.
    pub newer_than: Option<Duration>,
    /// So many, the first received ones.
    pub limit: i64,
}

/// What became of a skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    /// Given up: its receipt says so, and what waited for it goes on.
    Done,
    /// It had been applied meanwhile, or could never be; its row is gone.
    Dropped,
    /// There is no such parked delivery.
    Missing,
}

/// The parked deliveries that are meant and may still be applied.
///
/// # Errors
/// [`InboxError`] of the database.
pub async fn applicable(
    transaction: &Transaction<'_>,
    filter: &ParkedFilter<'_>,
) -> Result<Vec<i64>, InboxError> {
    let seconds = |age: Option<Duration>| age.map(|age| age.as_secs_f64());
    let (older, newer) = (seconds(filter.older_than), seconds(filter.newer_than));
    let values: [&(dyn ToSql + Sync); 7] = [
        &filter.ids,
        &filter.tenant_id,
        &filter.effect,
        &filter.reason,
        &older,
        &newer,
        &filter.limit,
    ];
    let rows = transaction
        .query(include_str!("sql/operate_applicable.sql"), &values)
        .await?;
    ids(&rows)
}

/// Sends parked deliveries round again, their attempts starting anew, due one after the other within
/// `stagger`. One that ended with its process is tried alone again. Answers which: two redrives at
/// once do it once.
///
/// # Errors
/// [`InboxError`] of the database.
pub async fn redrive(
    transaction: &Transaction<'_>,
    deliveries: &[i64],
    stagger: Duration,
) -> Result<Vec<i64>, InboxError> {
    let text = include_str!("sql/operate_redrive.sql");
    let rows = transaction
        .query(text, &[&deliveries, &stagger.as_secs_f64()])
        .await?;
    ids(&rows)
}

/// Gives a parked delivery up. Nothing is applied, now or by a later copy: the receipt says that it
/// was skipped. The head moves on if it fits, and what waited for it becomes due.
///
/// # Errors
/// [`InboxError`] of the database.
pub async fn skip(transaction: &Transaction<'_>, delivery: i64) -> Result<Skipped, InboxError> {
    // In the one order of locks: receipt, head, row. The row is locked last, and looked at again.
    let receipt = include_str!("sql/operate_skip_receipt.sql");
    let written = transaction.query_opt(receipt, &[&delivery]).await?;
    let head = include_str!("sql/operate_skip_head.sql");
    transaction.query(head, &[&delivery]).await?;
    let row = include_str!("sql/operate_skip_row.sql");
    let Some(row) = transaction.query_opt(row, &[&delivery]).await? else {
        return Ok(Skipped::Missing);
    };
    let applicable: bool = row.try_get("applicable")?;
    if !applicable || written.is_none() {
        return Ok(Skipped::Dropped);
    }
    let values: [&(dyn ToSql + Sync); 6] = [
        &row.try_get::<_, String>("effect_name")?,
        &row.try_get::<_, Option<String>>("tenant_id")?,
        &row.try_get::<_, Option<String>>("aggregate_type")?,
        &row.try_get::<_, Option<String>>("aggregate_id")?,
        &row.try_get::<_, Option<i64>>("previous_version")?,
        &row.try_get::<_, Option<i64>>("version")?,
    ];
    let moved = include_str!("sql/operate_move_head.sql");
    if transaction.execute(moved, &values).await? > 0 {
        let wake = include_str!("sql/operate_wake.sql");
        let [effect, tenant, kind, id, _, version] = values;
        transaction
            .execute(wake, &[effect, tenant, kind, id, version])
            .await?;
    }
    Ok(Skipped::Done)
}

fn ids(rows: &[Row]) -> Result<Vec<i64>, InboxError> {
    let ids: Result<_, tokio_postgres::Error> = rows.iter().map(|row| row.try_get(0)).collect();
    Ok(ids?)
}
