//! Replay: published events of a time are sent to one queue again, under their own ids. For whoever
//! keeps receipts elsewhere, or has lost what an effect wrote.

use chrono::{DateTime, Utc};
use event::{EffectName, PoolName, TenantId};
use tokio_postgres::types::ToSql;

use crate::error::TopologyError;
use crate::patterns::expression;
use crate::pools::{self, QueueRow};
use crate::refill::{LIST, Refill, Wanted};
use crate::statement;
use crate::verify::Topology;

/// Which published events are meant.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Published from here on.
    pub from: DateTime<Utc>,
    /// Published before this.
    pub to: DateTime<Utc>,
    /// Of this tenant only.
    pub tenant: Option<TenantId>,
    /// Only those for which the effect has neither a receipt nor a row here.
    pub missing: bool,
}

impl Topology {
    /// Sends these events to the queue of an effect again, in position order. None if the pool has
    /// no such effect.
    ///
    /// # Errors
    /// [`TopologyError`]; what was sent until then has arrived, and may be sent again.
    pub async fn replay(
        &self,
        (pool, effect): (&PoolName, &EffectName),
        replay: &Replay,
    ) -> Result<Option<u64>, TopologyError> {
        let Some(row) = self.queue_of(pool, effect).await? else {
            return Ok(None);
        };
        let refill = Refill {
            database: self.database(),
            broker: self.broker(),
            row: &row,
            wanted: Wanted::Replay(replay),
        };
        Ok(Some(refill.run(&mut 0).await?.0))
    }

    /// How many events a replay would send.
    ///
    /// # Errors
    /// [`TopologyError`]
    pub async fn count_replay(
        &self,
        (pool, effect): (&PoolName, &EffectName),
        replay: &Replay,
    ) -> Result<Option<i64>, TopologyError> {
        let Some(row) = self.queue_of(pool, effect).await? else {
            return Ok(None);
        };
        let page = replay.page(&row, 0, i64::MAX);
        let text = concat!(
            "select count(*) from (",
            include_str!("sql/replay.sql"),
            ") as meant"
        );
        let rows = self.database().transaction(LIST, async |transaction| {
            statement::rows(transaction, include_str!("sql/take_time.sql"), &[]).await?;
            statement::rows(transaction, text, &page.values()).await
        });
        let rows = rows.await?;
        Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
    }

    async fn queue_of(
        &self,
        pool: &PoolName,
        effect: &EffectName,
    ) -> Result<Option<QueueRow>, TopologyError> {
        let rows = pools::queues_of(self.database(), pool).await?;
        Ok(rows.into_iter().find(|row| row.queue.effect == *effect))
    }
}

/// The values of `replay.sql`.
pub(crate) struct Page<'a> {
    pool: &'a str,
    effect: &'a str,
    types: Vec<String>,
    after: i64,
    replay: &'a Replay,
    tenant: Option<&'a str>,
    limit: i64,
}

impl Replay {
    pub(crate) fn page<'a>(&'a self, row: &'a QueueRow, after: i64, limit: i64) -> Page<'a> {
        let queue = &row.queue;
        Page {
            pool: queue.pool.as_str(),
            effect: queue.effect.as_str(),
            types: queue.patterns.iter().map(|p| expression(p)).collect(),
            after,
            replay: self,
            tenant: self.tenant.as_ref().map(TenantId::as_str),
            limit,
        }
    }
}

impl Page<'_> {
    pub(crate) fn values(&self) -> [&(dyn ToSql + Sync); 9] {
        [
            &self.pool,
            &self.effect,
            &self.types,
            &self.after,
            &self.replay.from,
            &self.replay.to,
            &self.tenant,
            &self.replay.missing,
            &self.limit,
        ]
    }
}
