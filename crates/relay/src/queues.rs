//! Whether the queues of a pool are there, by asking the broker.

use broker::{Broker, Look};
use event::PoolName;
use runtime::database::Database;

use crate::store::StoreError;
use crate::verify::Verify;

/// Looks at queues through the broker.
#[derive(Debug, Clone)]
pub(crate) struct Queues {
    pub(crate) broker: Broker,
    pub(crate) database: Database,
}

impl Verify for Queues {
    async fn is_verified(&self, pool: &PoolName) -> bool {
        let Ok(effects) = self.effects(pool).await else {
            return false;
        };
        for effect in &effects {
            let name = format!("ticketflow.{pool}.{effect}");
            match self.broker.look_at(&name).await {
                Ok(Look::Present { .. }) => {}
                Ok(Look::Missing) | Err(_) => return false,
            }
        }
        !effects.is_empty()
    }
}

impl Queues {
    async fn effects(&self, pool: &PoolName) -> Result<Vec<String>, StoreError> {
        let wanted = std::slice::from_ref(pool);
        let pools = self
            .database
            .transaction(std::time::Duration::from_secs(5), async |transaction| {
                Ok::<_, StoreError>(outbox::pools(transaction, Some(wanted)).await?)
            })
            .await?;
        let effects = pools
            .into_values()
            .flat_map(|queues| queues.generations.into_keys());
        Ok(effects.collect())
    }
}
