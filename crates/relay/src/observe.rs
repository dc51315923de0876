//! Gauges read from the database, and readiness by progress.

use std::sync::Arc;
use std::time::{Duration, Instant};

use broker::LinkState;
use event::PoolName;
use runtime::database::Database;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use topology::{Standing, Verified};

use crate::circuit::Circuits;
use crate::health::Health;
use crate::metrics;
use crate::store::StoreError;

const EVERY: Duration = Duration::from_secs(5);
/// Counting a large backlog takes a while: it may have one part in so many of the time, but the
/// gauges are never older than `AT_MOST`.
const SHARE: u32 = 100;
const AT_MOST: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_secs(20);

/// What is observed, and told to whom.
#[derive(Debug, Clone)]
pub(crate) struct Observer {
    pub(crate) database: Database,
    pub(crate) pools: Option<Vec<PoolName>>,
    pub(crate) link: watch::Receiver<LinkState>,
    pub(crate) verified: watch::Receiver<Verified>,
    pub(crate) circuits: Arc<Circuits>,
    pub(crate) health: Arc<Health>,
    /// An event that is due and waits longer is no progress.
    pub(crate) most_due: Duration,
}

impl Observer {
    /// Reads the gauges until stopped.
    pub(crate) async fn watch_backlog(self, stop: CancellationToken) {
        let watching = async {
            loop {
                let started = Instant::now();
                if let Err(error) = self.read().await {
                    self.health.database_failed(&error);
                }
                let pause = (started.elapsed() * SHARE).clamp(EVERY, AT_MOST);
                tokio::time::sleep(pause).await;
            }
        };
        stop.run_until_cancelled(watching).await;
    }

    /// Follows the link until stopped.
    pub(crate) async fn watch_link(self, stop: CancellationToken) {
        let mut link = self.link.clone();
        let watching = async {
            loop {
                let obstacle = link.borrow_and_update().obstacle();
                metrics::link(obstacle.is_none());
                let missing = || missing(&self.verified.borrow());
                let refusing = || {
                    let (pool, reason) = self.circuits.reasons().into_iter().next()?;
                    Some(format!("pool {pool} refuses: {reason}"))
                };
                self.health
                    .broker(obstacle.or_else(missing).or_else(refusing));
                let changed = tokio::time::timeout(Duration::from_secs(1), link.changed()).await;
                if matches!(changed, Ok(Err(_))) {
                    return;
                }
            }
        };
        stop.run_until_cancelled(watching).await;
    }

    async fn read(&self) -> Result<(), StoreError> {
        let pools = self.pools.as_deref();
        let (backlog, oldest) = self
            .database
            .transaction(DEADLINE, async |transaction| {
                let backlog = outbox::backlog(transaction).await?;
                let oldest = outbox::oldest_due(transaction, pools).await?;
                Ok::<_, StoreError>((backlog, oldest))
            })
            .await?;
        metrics::backlog(&backlog, oldest);
        let verified = self.verified.borrow();
        for (pool, _) in verified.pools() {
            metrics::pool_ready(pool, verified.is_verified(pool));
        }
        self.health.oldest_due(oldest, self.most_due);
        Ok(())
    }
}

/// A pool whose queues are not all there.
fn missing(verified: &Verified) -> Option<String> {
    verified
        .pools()
        .find_map(|(pool, standing)| match standing {
            Standing::Verified => None,
            Standing::Unverified { reason } => Some(format!("pool {pool}: {reason}")),
        })
}
