//! Reading which queues there must be.

use broker::EffectQueue;
use event::{EffectName, PoolName};
use runtime::database::Database;
use tokio_postgres::Row;

use crate::error::TopologyError;
use crate::generation::AT_WORK;
use crate::statement;

/// One queue that must exist, and how far it is.
#[derive(Debug, Clone)]
pub struct QueueRow {
    /// The queue and its bindings.
    pub queue: EffectQueue,
    /// Raised before the queue is made.
    pub generation: i64,
    /// The generation in which it was declared.
    pub declared_generation: i64,
    /// The generation in which it got what it had missed.
    pub ready_generation: i64,
    /// Whether somebody made a step of its making not long ago.
    pub is_at_work: bool,
}

impl QueueRow {
    /// Whether it is declared and refilled in its present generation.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready_generation == self.generation
    }

    pub(crate) fn is_declared(&self) -> bool {
        self.declared_generation == self.generation
    }

    /// Whether nobody has ever begun to make it.
    pub(crate) fn is_new(&self) -> bool {
        self.declared_generation == 0 && self.generation == 1
    }

    fn read(row: &Row) -> Result<Self, TopologyError> {
        Ok(Self {
            queue: EffectQueue {
                pool: PoolName::parse(row.try_get("pool")?)?,
                effect: EffectName::parse(row.try_get("effect")?)?,
                patterns: row.try_get("event_types")?,
            },
            generation: row.try_get("generation")?,
            declared_generation: row.try_get("declared_generation")?,
            ready_generation: row.try_get("ready_generation")?,
            is_at_work: row.try_get("at_work")?,
        })
    }
}

/// The pools that tenants are in or that have queues.
pub(crate) async fn in_use(database: &Database) -> Result<Vec<PoolName>, TopologyError> {
    let rows = statement::alone(database, include_str!("sql/pools.sql"), &[]).await?;
    let names = rows
        .iter()
        .map(|row| Ok(PoolName::parse(row.try_get("pool")?)?));
    names.collect()
}

/// Whether a tenant is in a pool, or may come into it unasked: the shared one.
pub(crate) async fn has_tenants(
    database: &Database,
    pool: &PoolName,
) -> Result<bool, TopologyError> {
    let text = include_str!("sql/has_tenants.sql");
    let rows = statement::alone(database, text, &[&pool.as_str()]).await?;
    Ok(pool.as_str() == SHARED || !rows.is_empty())
}

/// The queues of a pool, in the order of their effects.
pub(crate) async fn queues_of(
    database: &Database,
    pool: &PoolName,
) -> Result<Vec<QueueRow>, TopologyError> {
    let at_work = AT_WORK.as_secs_f64();
    let text = include_str!("sql/queues.sql");
    let rows = statement::alone(database, text, &[&pool.as_str(), &at_work]).await?;
    rows.iter().map(QueueRow::read).collect()
}

/// The pool whose effects a new one gets unless told otherwise.
pub(crate) const SHARED: &str = "shared";

/// Gives a pool without any effects those of another.
pub(crate) async fn add_effects(
    database: &Database,
    pool: &PoolName,
    like: &str,
) -> Result<(), TopologyError> {
    let text = include_str!("sql/add_effects.sql");
    let added = statement::alone(database, text, &[&pool.as_str(), &like]).await;
    added.map(drop)
}

/// Notes that a pool's queues have been found in order.
pub(crate) async fn note_verified(
    database: &Database,
    pool: &PoolName,
) -> Result<(), TopologyError> {
    let text = include_str!("sql/note_verified.sql");
    statement::alone(database, text, &[&pool.as_str()])
        .await
        .map(drop)
}
