//! A batch of which an event may have killed a process: one by one, each try written first.

use std::collections::HashSet;
use std::sync::Arc;

use broker::{BrokerError, Publishers};
use outbox::{ClaimedBatch, Settlement};

use crate::crash;
use crate::cycle::Cycle;
use crate::leases::Lease;
use crate::settling::Settler;
use crate::store::{Store, StoreError};
use crate::verify::Verify;

/// An event whose written try stayed unsettled so often kills the process.
const DEADLY_TRIES: i16 = 3;

/// What is done with the next event.
enum Step {
    /// It is sent.
    Send,
    /// It is settled without being sent.
    Settle(Settlement),
}

impl<S: Store, P: Publishers, V: Verify> Cycle<S, P, V> {
    /// Publishes and settles each event before the next, under the one lease. Answers the last one,
    /// whose settle gives the lanes back.
    pub(crate) async fn one_by_one(
        &mut self,
        batch: ClaimedBatch,
        lease: Arc<Lease>,
    ) -> Result<(Settler<S>, Option<BrokerError>), StoreError> {
        tracing::warn!(events = batch.events().len(), lease.token = %batch.token(),
            "claims of these lanes ended unsettled: publishing one by one");
        let mut stopped = HashSet::new();
        let mut last: Option<(Settler<S>, Option<BrokerError>)> = None;
        for single in batch.one_by_one() {
            if let Some((former, _)) = last.take() {
                former.settle().await?;
            }
            let aggregate = aggregate_of(&single);
            let step = self
                .step(&single, &lease, stopped.contains(&aggregate))
                .await?;
            let (settler, outage) = match step {
                Step::Send => self.all_at_once(single, lease.clone()).await,
                Step::Settle(settlement) => {
                    let settling = single.settled_as(vec![settlement]);
                    (Settler::new(&self.store, settling, lease.clone()), None)
                }
            };
            if !settler.is_published() {
                stopped.insert(aggregate);
            }
            last = Some((settler, outage));
        }
        last.ok_or_else(|| StoreError::Empty)
    }

    async fn step(
        &self,
        single: &ClaimedBatch,
        lease: &Lease,
        is_stopped: bool,
    ) -> Result<Step, StoreError> {
        let Some(event) = single.events().first() else {
            return Ok(Step::Settle(Settlement::untouched()));
        };
        if is_stopped || self.stop.is_cancelled() || !lease.is_held() {
            return Ok(Step::Settle(Settlement::untouched()));
        }
        let tries = self.store.write_try(&event.key, single.token()).await?;
        crash::point(crash::TRY_WRITTEN);
        Ok(match tries {
            None => Step::Settle(Settlement::untouched()),
            Some(tries) if tries > DEADLY_TRIES => Step::Settle(Settlement::Parked {
                reason: format!("publishing it ended the process {DEADLY_TRIES} times"),
            }),
            Some(_) => Step::Send,
        })
    }
}

fn aggregate_of(single: &ClaimedBatch) -> Option<(String, String, String)> {
    let event = single.events().first().filter(|event| event.is_ordered)?;
    let (kind, id) = event.aggregate.clone();
    Some((event.key.tenant_id.clone(), kind, id))
}
