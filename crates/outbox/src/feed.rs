//! Feeding a hold: when a head is done, the next ones of its aggregate are let go.

use deadpool_postgres::Transaction;

use crate::error::OutboxError;
use crate::statement;

/// How many waiting events of an aggregate are let go at once.
const RUN: i64 = 100;

/// A head that is done: published, or skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoneHead<'a> {
    /// Its tenant.
    pub tenant_id: &'a str,
    /// Its aggregate's type.
    pub aggregate_type: &'a str,
    /// Its aggregate's id.
    pub aggregate_id: &'a str,
    /// Its position.
    pub position: i64,
}

impl DoneHead<'_> {
    pub(crate) fn aggregate(&self) -> (&str, &str, &str) {
        (self.tenant_id, self.aggregate_type, self.aggregate_id)
    }
}

/// Moves the holds of these aggregates on, if they have any. The caller has locked the lanes, in an
/// earlier statement; each aggregate comes once.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn feed(
    transaction: &Transaction<'_>,
    heads: &[DoneHead<'_>],
) -> Result<(), OutboxError> {
    if heads.is_empty() {
        return Ok(());
    }
    let tenants: Vec<&str> = heads.iter().map(|head| head.tenant_id).collect();
    let types: Vec<&str> = heads.iter().map(|head| head.aggregate_type).collect();
    let ids: Vec<&str> = heads.iter().map(|head| head.aggregate_id).collect();
    let positions: Vec<i64> = heads.iter().map(|head| head.position).collect();
    let text = include_str!("sql/feed.sql");
    statement::changed(
        transaction,
        text,
        &[&tenants, &types, &ids, &positions, &RUN],
    )
    .await?;
    Ok(())
}
