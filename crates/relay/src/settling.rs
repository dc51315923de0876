//! Settling what was published, and counting it.

use std::sync::Arc;

use outbox::{Settled, Settling};

use crate::leases::Lease;
use crate::store::{Store, StoreError};
use crate::{crash, metrics};

/// A batch that only has to be settled. Its lease is kept until that is done.
#[derive(Debug)]
#[must_use]
pub struct Settler<S> {
    store: Arc<S>,
    settling: Settling,
    lease: Arc<Lease>,
}

impl<S: Store> Settler<S> {
    pub(crate) fn new(store: &Arc<S>, settling: Settling, lease: Arc<Lease>) -> Self {
        Self {
            store: Arc::clone(store),
            settling,
            lease,
        }
    }

    /// Whether all of it is to be marked as published.
    pub(crate) fn is_published(&self) -> bool {
        self.settling
            .verdicts()
            .all(|(_, settlement)| settlement.is_published())
    }

    /// Settles it.
    ///
    /// # Errors
    /// [`StoreError`]; its events are claimed again when the lease has run out.
    pub async fn settle(self) -> Result<Settled, StoreError> {
        let settled = self.store.settle(&self.settling).await?;
        crash::point(crash::SETTLED);
        metrics::settled(&settled);
        for (event, settlement) in self.settling.verdicts() {
            let traceparent = event
                .content
                .as_ref()
                .ok()
                .and_then(|event| event.trace_context.traceparent.as_deref());
            tracing::debug!(event.id = %event.key.event_id, traceparent, ?settlement, "settled");
        }
        if settled.lease_lost > 0 {
            let events = settled.lease_lost;
            tracing::warn!(events, lease.token = %self.settling.token(), "lease lost before the settle");
        }
        drop(self.lease);
        Ok(settled)
    }
}
