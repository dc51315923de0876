//! Looking for work: one worker at a time, so that an idle process asks once, not once a worker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use broker::LinkState;
use event::PoolName;
use outbox::{ClaimRequest, Claimed, ClaimedBatch, Resume};
use runtime::backoff::Backoff;
use tokio::sync::{Mutex, Notify, watch};
use tokio_util::sync::CancellationToken;
use topology::Verified;

use crate::circuit::{Circuits, Probe};
use crate::health::Health;
use crate::pace::Pace;
use crate::store::{Store, StoreError};

/// How often what waits for its time is looked for.
const DUE_EVERY: Duration = Duration::from_millis(100);

/// Finds batches for the workers.
#[derive(Debug)]
pub(crate) struct Scout<S> {
    pub(crate) store: Arc<S>,
    pub(crate) circuits: Arc<Circuits>,
    pub(crate) request: ClaimRequest,
    pub(crate) link: watch::Receiver<LinkState>,
    /// The pools whose queues are all there.
    pub(crate) verified: watch::Receiver<Verified>,
    /// Something was recorded, or lanes were given back.
    pub(crate) hint: Arc<Notify>,
    pub(crate) health: Arc<Health>,
    pub(crate) turn: Mutex<Turn>,
    pub(crate) stop: CancellationToken,
}

/// What whoever has the turn to look goes on from.
#[derive(Debug)]
pub(crate) struct Turn {
    resume: Resume,
    pace: Pace,
    failures: Backoff,
    due_at: Instant,
}

impl Turn {
    pub(crate) fn new(poll_least: Duration, poll_most: Duration) -> Self {
        Self {
            resume: Resume::default(),
            pace: Pace::new(poll_least, poll_most),
            failures: Backoff::new(Duration::from_millis(50), Duration::from_secs(2)),
            due_at: Instant::now(),
        }
    }
}

impl<S: Store> Scout<S> {
    /// Waits for work and claims it. None once stopped: a claim is never cut off half way.
    pub(crate) async fn next_batch(&self) -> Option<ClaimedBatch> {
        let mut turn = self.until_stopped(self.turn.lock()).await?;
        loop {
            self.link_up().await?;
            let wait = match self.look(&mut turn).await {
                Ok(Some(batch)) => {
                    turn.pace.worked();
                    return Some(batch);
                }
                Ok(None) => turn.pace.idled(),
                Err(error) => {
                    self.health.database_failed(&error);
                    turn.failures.next_delay()
                }
            };
            // A hint that came while looking is kept, so none is missed between look and wait.
            let waiting = tokio::time::timeout(wait, self.hint.notified());
            let _ = self.until_stopped(waiting).await?;
        }
    }

    async fn look(&self, turn: &mut Turn) -> Result<Option<ClaimedBatch>, StoreError> {
        if turn.due_at <= Instant::now() {
            self.store.let_go_due().await?;
            turn.due_at = Instant::now() + DUE_EVERY;
        }
        if let Some(probe) = self.circuits.due() {
            return self.probe(&probe).await;
        }
        let request = ClaimRequest {
            pools: Some(self.verified_pools()),
            except: self.circuits.open(),
            ..self.request.clone()
        };
        let Claimed { batch, resume, .. } = self.store.claim(&request, &turn.resume).await?;
        turn.resume = resume;
        turn.failures.reset();
        self.health.looked();
        Ok(batch)
    }

    /// The event that was refused, or if it is gone the first that can be claimed: one alone.
    async fn probe(&self, probe: &Probe) -> Result<Option<ClaimedBatch>, StoreError> {
        let request = ClaimRequest {
            pools: Some(vec![probe.pool.clone()]),
            lanes: 1,
            events: 1,
            ..self.request.clone()
        };
        let batch = match &probe.event {
            Some((event, lane)) => self.store.claim_one(&request, (event, lane)).await,
            None => self
                .store
                .claim(&request, &Resume::default())
                .await
                .map(|claimed| claimed.batch),
        };
        let first = |batch: &ClaimedBatch| batch.events().first().cloned();
        match batch.as_ref().map(|batch| batch.as_ref().and_then(first)) {
            Ok(Some(event)) => self
                .circuits
                .probing(&probe.pool, (&event.key, &event.lane)),
            Ok(None) => self.circuits.missed(&probe.pool, true),
            Err(_) => self.circuits.missed(&probe.pool, false),
        }
        batch
    }

    fn verified_pools(&self) -> Vec<PoolName> {
        let verified = self.verified.borrow();
        let pools = verified.pools().map(|(pool, _)| pool);
        pools
            .filter(|pool| verified.is_verified(pool))
            .cloned()
            .collect()
    }

    /// Nothing is claimed while nothing could be published.
    async fn link_up(&self) -> Option<()> {
        let mut link = self.link.clone();
        let up = self
            .until_stopped(link.wait_for(LinkState::is_connected))
            .await?;
        up.ok().map(drop)
    }

    async fn until_stopped<T>(&self, waiting: impl Future<Output = T>) -> Option<T> {
        self.stop.run_until_cancelled(waiting).await
    }
}
