//! When a cycle runs: as soon as there is work and a channel, until stopped.

use std::sync::Arc;
use std::time::Duration;

use broker::Publishers;
use runtime::backoff::Backoff;
use runtime::start::told;
use tokio::task::JoinHandle;

use crate::cycle::Cycle;
use crate::scout::Scout;
use crate::settling::Settler;
use crate::store::Store;
use crate::verify::Verify;

/// A worker: claims are made in turns with the others, publishing is its own, and it settles one
/// batch while it publishes the next.
pub(crate) struct Worker<S, P: Publishers, V> {
    pub(crate) cycle: Cycle<S, P, V>,
    pub(crate) scout: Arc<Scout<S>>,
    pub(crate) settling: Option<JoinHandle<()>>,
}

impl<S: Store, P: Publishers, V: Verify> Worker<S, P, V> {
    pub(crate) async fn work(mut self) {
        let mut outage = Backoff::new(Duration::from_millis(20), Duration::from_secs(2));
        while !self.cycle.stop.is_cancelled() {
            if let Err(error) = self.cycle.sender.prepare().await {
                tracing::debug!(%error, "no channel");
                self.pause(outage.next_delay()).await;
                continue;
            }
            outage.reset();
            let Some(batch) = self.scout.next_batch().await else {
                break;
            };
            match self.cycle.publish(batch).await {
                Ok((settler, _)) => self.settle_beside(settler).await,
                Err(error) => self.scout.health.database_failed(&error),
            }
        }
        self.settled().await;
    }

    /// Settles while the next batch is claimed and published; one at a time.
    async fn settle_beside(&mut self, settler: Settler<S>) {
        self.settled().await;
        let scout = Arc::clone(&self.scout);
        self.settling = Some(tokio::spawn(async move {
            if let Err(error) = settler.settle().await {
                scout.health.database_failed(&error);
            }
            // Its lanes are free again.
            scout.hint.notify_one();
        }));
    }

    async fn settled(&mut self) {
        if let Some(settling) = self.settling.take()
            && let Err(error) = settling.await
        {
            tracing::error!(
                error = told(&error),
                "a settle ended early; its lease runs out"
            );
        }
    }

    async fn pause(&self, wait: Duration) {
        let _ = tokio::time::timeout(wait, self.cycle.stop.cancelled()).await;
    }
}
