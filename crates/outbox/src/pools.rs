//! The queues that must exist for a pool, and the generation each is in.

use std::collections::BTreeMap;

use deadpool_postgres::Transaction;
use event::PoolName;
use tokio_postgres::Row;

use crate::error::OutboxError;
use crate::statement;

/// The generation of each of a pool's effects, as they were at a claim.
pub type Generations = BTreeMap<String, i64>;

/// The queues of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolQueues {
    /// Whether each of them has been declared and refilled in its present generation.
    pub is_ready: bool,
    /// Which generation that is, by effect.
    pub generations: Generations,
}

/// The pools that have queues: these, or all.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn pools(
    transaction: &Transaction<'_>,
    wanted: Option<&[PoolName]>,
) -> Result<BTreeMap<PoolName, PoolQueues>, OutboxError> {
    let wanted = wanted.map(names);
    let rows = statement::rows(transaction, include_str!("sql/pools.sql"), &[&wanted]).await?;
    collect(&rows)
}

/// The same, kept from changing to the end of the transaction.
pub(crate) async fn lock(
    transaction: &Transaction<'_>,
    wanted: &[&str],
) -> Result<BTreeMap<PoolName, PoolQueues>, OutboxError> {
    let rows =
        statement::rows(transaction, include_str!("sql/generations.sql"), &[&wanted]).await?;
    collect(&rows)
}

pub(crate) fn names(pools: &[PoolName]) -> Vec<&str> {
    pools.iter().map(PoolName::as_str).collect()
}

fn collect(rows: &[Row]) -> Result<BTreeMap<PoolName, PoolQueues>, OutboxError> {
    let mut pools = BTreeMap::new();
    for row in rows {
        let name: &str = row.try_get("pool")?;
        let name = PoolName::parse(name).map_err(|error| OutboxError::Shape(error.to_string()))?;
        let queues = pools.entry(name).or_insert_with(|| PoolQueues {
            is_ready: true,
            generations: Generations::new(),
        });
        queues.is_ready &= row.try_get::<_, bool>("ready")?;
        queues
            .generations
            .insert(row.try_get("effect")?, row.try_get("generation")?);
    }
    Ok(pools)
}
