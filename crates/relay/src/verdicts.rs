//! From the outcomes of a batch to its settlements, and what they mean for the pools' circuits.

use std::collections::HashMap;

use broker::{Doubt, PublishOutcome};
use event::PoolName;
use outbox::{ClaimedBatch, ClaimedEvent, Settlement};

use crate::circuit::Circuits;
use crate::decide::{Attempt, Fault, Policy, decide, fault};
use crate::publishing::Published;
use crate::verify::Verify;

/// What verdicts are reached with.
#[derive(Debug)]
pub(crate) struct Verdicts<'a, V> {
    pub(crate) circuits: &'a Circuits,
    pub(crate) verify: &'a V,
    pub(crate) policy: &'a Policy,
}

impl<V: Verify> Verdicts<'_, V> {
    /// A settlement for each event, in their order.
    pub(crate) async fn on(&self, batch: &ClaimedBatch, published: &Published) -> Vec<Settlement> {
        let verified = self.verified(batch, published).await;
        let pairs = batch.events().iter().zip(&published.outcomes);
        pairs
            .map(|(event, outcome)| match outcome {
                Some(outcome) => {
                    let is_verified = verified.get(&event.pool).copied().unwrap_or(true);
                    self.note(event, outcome, is_verified);
                    decide(outcome, &attempt(event, is_verified), self.policy)
                }
                None => {
                    self.circuits.untold(&event.pool, &event.key, false);
                    Settlement::untouched()
                }
            })
            .collect()
    }

    /// An event that nobody takes is to blame only if all queues are there: looked at now, since the
    /// last look may be older than the loss of a queue.
    async fn verified(
        &self,
        batch: &ClaimedBatch,
        published: &Published,
    ) -> HashMap<PoolName, bool> {
        let mut verified = HashMap::new();
        for (event, outcome) in batch.events().iter().zip(&published.outcomes) {
            if is_unroutable(outcome.as_ref()) && !verified.contains_key(&event.pool) {
                let is_verified = match batch.generations(&event.pool) {
                    Some(since) => self.verify.is_verified(&event.pool, since).await,
                    None => false,
                };
                verified.insert(event.pool.clone(), is_verified);
            }
        }
        verified
    }

    fn note(&self, event: &ClaimedEvent, outcome: &PublishOutcome, is_verified: bool) {
        match fault(outcome, is_verified) {
            Fault::Nobody => self.circuits.confirmed(&event.pool, &event.key),
            Fault::Destination => {
                let key = (&event.key, &event.lane);
                self.circuits
                    .refused(&event.pool, key, &outcome.to_string());
            }
            Fault::Link => self.circuits.untold(&event.pool, &event.key, false),
            Fault::Event => self.circuits.untold(&event.pool, &event.key, true),
        }
        if *outcome == PublishOutcome::Unknown(Doubt::NotConfirming) {
            tracing::error!("a channel was not in confirm mode: a bug");
        }
    }
}

fn attempt(event: &ClaimedEvent, is_verified: bool) -> Attempt {
    Attempt {
        refusals: event.attempts,
        refused_for: event.refused_for,
        is_verified,
        jitter: fastrand::f64(),
    }
}

fn is_unroutable(outcome: Option<&PublishOutcome>) -> bool {
    match outcome {
        Some(PublishOutcome::Unroutable { .. }) => true,
        Some(
            PublishOutcome::Confirmed | PublishOutcome::Refused(_) | PublishOutcome::Unknown(_),
        )
        | None => false,
    }
}
