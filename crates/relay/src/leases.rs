//! Leases of this process, renewed by a task and a connection of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outbox::{ClaimedBatch, HeldLane, LaneKey, LeaseToken, Renewal};
use runtime::database::{Database, DatabaseError, Session};
use tokio_util::sync::CancellationToken;

use crate::metrics;
use crate::store::StoreError;

/// The leases of all batches at work.
#[derive(Debug, Clone)]
pub struct Leases {
    held: Arc<Mutex<HashMap<LeaseToken, Held>>>,
    lease: Duration,
}

#[derive(Debug)]
struct Held {
    lanes: Vec<LaneKey>,
    until: Instant,
}

/// The lease of one batch, renewed for as long as this lives.
#[derive(Debug)]
pub struct Lease {
    token: LeaseToken,
    leases: Leases,
}

impl Leases {
    /// None yet; each holds for `lease` from when it was asked for.
    #[must_use]
    pub fn new(lease: Duration) -> Self {
        Self {
            held: Arc::default(),
            lease,
        }
    }

    /// Keeps the lease of a batch.
    #[must_use]
    pub fn keep(&self, batch: &ClaimedBatch) -> Arc<Lease> {
        let held = Held {
            lanes: batch.lanes().to_vec(),
            until: batch.leased_at() + self.lease,
        };
        self.lock().insert(batch.token(), held);
        Arc::new(Lease {
            token: batch.token(),
            leases: self.clone(),
        })
    }

    /// Renews them until stopped and none is left: a batch is finished after the stop as well.
    pub(crate) async fn renew(self, database: Database, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(self.lease / 3);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut line = None;
        while !(stop.is_cancelled() && self.lock().is_empty()) {
            ticks.tick().await;
            if let Err(error) = self.renew_once(&database, &mut line).await {
                line = None;
                metrics::renewal_failed();
                let error = runtime::start::told(&error);
                tracing::warn!(error, "leases could not be renewed");
            }
        }
    }

    async fn renew_once(
        &self,
        database: &Database,
        line: &mut Option<(Session, Renewal)>,
    ) -> Result<(), StoreError> {
        let lanes = self.lanes();
        metrics::leased_lanes(lanes.len());
        if lanes.is_empty() {
            return Ok(());
        }
        let asked = Instant::now();
        let renewing = async {
            let (session, renewal) = match line.take() {
                Some(line) => line,
                None => {
                    let session = database.session("leases").await?;
                    let renewal = Renewal::prepare(&session).await?;
                    (session, renewal)
                }
            };
            let renewed = renewal.renew(&session, &lanes, self.lease).await?;
            *line = Some((session, renewal));
            Ok::<_, StoreError>(renewed)
        };
        // A slow answer still counts; a silent connection is given up while there is time for another.
        let within = self.lease / 2;
        let renewed = tokio::time::timeout(within, renewing)
            .await
            .map_err(|_| DatabaseError::Deadline(within))??;
        self.extend(&renewed, asked);
        Ok(())
    }

    fn lanes(&self) -> Vec<HeldLane> {
        let held = self.lock();
        let lanes = held.iter().flat_map(|(token, held)| {
            let of_token = |lane: &LaneKey| HeldLane {
                lane: lane.clone(),
                token: *token,
            };
            held.lanes.iter().map(of_token)
        });
        lanes.collect()
    }

    /// A lease of which every lane was renewed holds longer; otherwise it runs out as it stands.
    fn extend(&self, renewed: &HashMap<LeaseToken, usize>, asked: Instant) {
        for (token, held) in self.lock().iter_mut() {
            if renewed.get(token) == Some(&held.lanes.len()) {
                held.until = asked + self.lease;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LeaseToken, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// Whether it still holds, by this process's monotonic clock: from before it was asked for.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let held = self.leases.lock();
        held.get(&self.token)
            .is_some_and(|held| Instant::now() < held.until)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.leases.lock().remove(&self.token);
    }
}
