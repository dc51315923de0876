//! Whether every queue that a pool needs is there.

use std::future::Future;
use std::time::Duration;

use broker::{Broker, Look};
use event::{EffectName, PoolName, queue_name};
use outbox::Generations;
use runtime::database::Database;

use crate::store::StoreError;

const DEADLINE: Duration = Duration::from_secs(5);

/// Looks whether the queues of a pool are there.
pub trait Verify: Send + Sync + 'static {
    /// Whether every one of them is there now, and none was made anew since they were in these
    /// generations.
    fn is_verified(
        &self,
        pool: &PoolName,
        since: &Generations,
    ) -> impl Future<Output = bool> + Send;
}

/// Asks the broker, and the table of queues.
#[derive(Debug, Clone)]
pub(crate) struct Queues {
    pub(crate) broker: Broker,
    pub(crate) database: Database,
}

impl Verify for Queues {
    async fn is_verified(&self, pool: &PoolName, since: &Generations) -> bool {
        for effect in since.keys() {
            let Ok(effect) = EffectName::parse(effect) else {
                return false;
            };
            match self.broker.look_at(&queue_name(pool, &effect)).await {
                Ok(Look::Present { .. }) => {}
                Ok(Look::Missing) | Err(_) => return false,
            }
        }
        // Read after the looks: one that was missing and is there again is in another generation.
        self.generations(pool).await.is_ok_and(|now| now == *since)
    }
}

impl Queues {
    async fn generations(&self, pool: &PoolName) -> Result<Generations, StoreError> {
        let wanted = std::slice::from_ref(pool);
        let pools = self
            .database
            .transaction(DEADLINE, async |transaction| {
                Ok::<_, StoreError>(outbox::pools(transaction, Some(wanted)).await?)
            })
            .await?;
        let queues = pools.into_values().next();
        Ok(queues.map(|queues| queues.generations).unwrap_or_default())
    }
}
