//! What a cycle does with a claimed batch: publish it, decide, settle.

use std::sync::Arc;

use broker::{BrokerError, Publishers};
use outbox::{ClaimedBatch, Settled};
use tokio_util::sync::CancellationToken;

use crate::circuit::Circuits;
use crate::decide::Policy;
use crate::leases::{Lease, Leases};
use crate::publishing::{Leave, Sender};
use crate::settling::Settler;
use crate::store::{Store, StoreError};
use crate::verdicts::Verdicts;
use crate::verify::Verify;
use crate::{crash, metrics};

/// One worker's way from a claimed batch to a settled one.
pub struct Cycle<S, P: Publishers, V> {
    /// The outbox.
    pub store: Arc<S>,
    /// This worker's channel.
    pub sender: Sender<P>,
    /// Tells whether all queues of a pool are there.
    pub verify: V,
    /// Shared by the workers.
    pub circuits: Arc<Circuits>,
    /// Shared by the workers.
    pub leases: Leases,
    /// How long events wait.
    pub policy: Policy,
    /// Cancelled when no further wave is to begin.
    pub stop: CancellationToken,
}

/// What a cycle came to.
#[derive(Debug, Default)]
pub struct Report {
    /// What was written.
    pub settled: Settled,
    /// Why there was no channel, if that ended it.
    pub outage: Option<BrokerError>,
}

impl<S: Store, P: Publishers, V: Verify> Cycle<S, P, V> {
    /// Publishes a batch and settles it.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be settled; its events are claimed again then.
    pub async fn run(&mut self, batch: ClaimedBatch) -> Result<Report, StoreError> {
        let (settler, outage) = self.publish(batch).await?;
        let settled = settler.settle().await?;
        Ok(Report { settled, outage })
    }

    /// Publishes a batch. What is left is to settle it, which need not be waited for.
    ///
    /// # Errors
    /// [`StoreError`] if it was to be published one by one and that could not be written down.
    pub async fn publish(
        &mut self,
        batch: ClaimedBatch,
    ) -> Result<(Settler<S>, Option<BrokerError>), StoreError> {
        crash::point(crash::CLAIMED_NOT_PUBLISHED);
        let lease = self.leases.keep(&batch);
        if batch.is_suspect() {
            return self.one_by_one(batch, lease).await;
        }
        Ok(self.all_at_once(batch, lease).await)
    }

    pub(crate) async fn all_at_once(
        &mut self,
        batch: ClaimedBatch,
        lease: Arc<Lease>,
    ) -> (Settler<S>, Option<BrokerError>) {
        let leave = Leave {
            lease: &lease,
            stop: &self.stop,
        };
        let published = self.sender.publish(&batch, leave).await;
        metrics::batch(&batch, &published);
        let verdicts = Verdicts {
            circuits: &self.circuits,
            verify: &self.verify,
            policy: &self.policy,
        };
        let settlements = verdicts.on(&batch, &published).await;
        let settling = batch.settled_as(settlements);
        (Settler::new(&self.store, settling, lease), published.outage)
    }
}
