//! What a batch goes through: read, applied and committed, acknowledged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use broker::{Batch, Ended, Received};
use event::{EffectName, PoolName};
use inbox::{Delivery, Effect, InboxError, Outcome, Remedy, mutant};
use runtime::backoff::Backoff;

use crate::health::Channel;
use crate::metrics;
use crate::nobodys::Nobodys;
use crate::shared::Shared;

const BASE: Duration = Duration::from_millis(50);
const CAP: Duration = Duration::from_secs(2);

/// Whose deliveries a queue brings.
#[derive(Clone)]
pub(crate) enum Work {
    /// An effect's own.
    Effect(Arc<dyn Effect>),
    /// Dead letters of all effects of a pool.
    Dead,
}

/// Why a batch was not acknowledged.
pub(crate) enum NotAcked {
    /// The process stops and the database is away: the deliveries come again.
    Stopping,
    /// The subscription is over: the deliveries come again, as duplicates.
    Ended(Ended),
}

/// What a batch was, once it is acknowledged.
pub(crate) struct Acked {
    pub(crate) deliveries: usize,
    pub(crate) bytes: usize,
}

/// One queue's cycle.
pub(crate) struct Cycle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pool: PoolName,
    pub(crate) queue: String,
    pub(crate) channel: Channel,
    pub(crate) work: Work,
}

impl Cycle {
    /// Applies and acknowledges a batch. While the database is away it is held, and no other one
    /// is taken.
    pub(crate) async fn handle(&self, mut batch: Batch<'_>) -> Result<Acked, NotAcked> {
        let received = Instant::now();
        let acked = Acked {
            deliveries: batch.deliveries().len(),
            bytes: batch.deliveries().iter().map(|one| one.body().len()).sum(),
        };
        self.shared.health.busy(&self.channel);
        if mutant::is_planted(mutant::ACK_BEFORE_COMMIT) {
            return self.acked_first(batch, acked).await;
        }
        let outcomes = self.decided(&mut batch).await?;
        metrics::batch(&outcomes, received.elapsed());
        if outcomes.iter().any(|(_, outcome)| waits(outcome)) {
            self.shared.rows.notify_one();
        }
        inbox::crash::point(inbox::crash::COMMITTED_NOT_ACKED);
        batch.ack().await.map_err(NotAcked::Ended)?;
        self.shared.health.idle(&self.channel);
        Ok(acked)
    }

    /// A planted bug: what is acknowledged first is lost with the process.
    async fn acked_first(&self, mut batch: Batch<'_>, acked: Acked) -> Result<Acked, NotAcked> {
        let deliveries = self.read_all(&mut batch);
        batch.ack().await.map_err(NotAcked::Ended)?;
        if let Work::Effect(effect) = &self.work {
            self.applied(effect.as_ref(), &deliveries).await?;
        }
        Ok(acked)
    }

    async fn decided(&self, batch: &mut Batch<'_>) -> Result<Vec<(EffectName, Outcome)>, NotAcked> {
        match &self.work {
            Work::Effect(effect) => {
                let deliveries = self.read_all(batch);
                let outcomes = self.applied(effect.as_ref(), &deliveries).await?;
                metrics::applied(effect.name(), &deliveries, &outcomes);
                Ok(outcomes
                    .into_iter()
                    .map(|outcome| (effect.name().clone(), outcome))
                    .collect())
            }
            Work::Dead => {
                let received = batch.deliveries();
                let mut outcomes = Vec::with_capacity(received.len());
                for one in received {
                    outcomes.push(self.dead(one).await?);
                }
                Ok(outcomes)
            }
        }
    }

    fn read_all(&self, batch: &mut Batch<'_>) -> Vec<Delivery> {
        let done: Vec<_> = batch.deliveries().iter().map(is_taken_for_done).collect();
        let delivered = batch.take_delivered().into_iter().zip(done);
        delivered
            .filter(|(_, done)| !done)
            .map(|(delivered, _)| Delivery::read(self.pool.clone(), delivered))
            .collect()
    }

    async fn applied(
        &self,
        effect: &dyn Effect,
        deliveries: &[Delivery],
    ) -> Result<Vec<Outcome>, NotAcked> {
        let mut hold = Hold::new(self);
        loop {
            match self.shared.inbox.apply_set(effect, deliveries).await {
                Ok(outcomes) => return Ok(outcomes),
                Err(error) if error.remedy() == Remedy::Refused => break,
                Err(error) => hold.on(&error).await?,
            }
        }
        // A statement of the inbox itself was refused: find out by whose fault.
        let mut outcomes = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            outcomes.push(self.alone(effect, delivery).await?);
        }
        Ok(outcomes)
    }

    async fn alone(&self, effect: &dyn Effect, delivery: &Delivery) -> Result<Outcome, NotAcked> {
        let inbox = &self.shared.inbox;
        let mut hold = Hold::new(self);
        let mut refused: Option<InboxError> = None;
        loop {
            let tried = match &refused {
                None => inbox.apply_once(effect, delivery).await,
                Some(error) => inbox.park(effect, delivery, &error.to_string()).await,
            };
            match tried {
                Ok(outcome) => return Ok(outcome),
                Err(error) if error.remedy() == Remedy::Refused && refused.is_none() => {
                    tracing::error!(effect = %effect.name(), %error, "a delivery cannot be decided");
                    refused = Some(error);
                }
                Err(error) => hold.on(&error).await?,
            }
        }
    }

    /// A dead letter may have killed a process: it is kept, to be tried alone.
    async fn dead(&self, received: &Received) -> Result<(EffectName, Outcome), NotAcked> {
        let delivery = Delivery::read(self.pool.clone(), received.delivered.clone());
        let found = self.effect_of(received);
        let nobodys = Nobodys::new(found.clone());
        let own = found
            .as_ref()
            .and_then(|name| self.shared.effect(name.as_str()));
        let effect: &dyn Effect = own.map_or(&nobodys, |effect| effect.as_ref());
        let inbox = &self.shared.inbox;
        let mut hold = Hold::new(self);
        loop {
            let tried = match found {
                Some(_) => inbox.suspect(effect, &delivery).await,
                None => {
                    inbox
                        .park(effect, &delivery, "a dead letter of no effect's queue")
                        .await
                }
            };
            match tried {
                Ok(outcome) => return Ok((effect.name().clone(), outcome)),
                Err(error) => hold.on(&error).await?,
            }
        }
    }

    /// Which effect of this pool a dead letter was for.
    fn effect_of(&self, received: &Received) -> Option<EffectName> {
        let queue = &received.death.as_ref()?.queue;
        let prefix = format!("ticketflow.{}.", self.pool);
        EffectName::parse(queue.strip_prefix(&prefix)?).ok()
    }
}

/// Holds a batch while nothing can be decided: it is neither acknowledged nor given back, since
/// each time it is given back counts as a delivery.
struct Hold<'a> {
    cycle: &'a Cycle,
    backoff: Backoff,
}

impl<'a> Hold<'a> {
    fn new(cycle: &'a Cycle) -> Self {
        Self {
            cycle,
            backoff: Backoff::new(BASE, CAP),
        }
    }

    async fn on(&mut self, error: &InboxError) -> Result<(), NotAcked> {
        let Cycle { shared, queue, .. } = self.cycle;
        if self.backoff.attempt() == 0 {
            tracing::warn!(queue, %error, "nothing can be decided; a batch is held");
        }
        if error.remedy() == Remedy::Away {
            shared.health.database_failed(&error.to_string());
        }
        tokio::select! {
            () = tokio::time::sleep(self.backoff.next_delay()) => Ok(()),
            () = shared.stop.cancelled() => Err(NotAcked::Stopping),
        }
    }
}

/// Never, unless that bug is planted: only the receipt says what was done.
fn is_taken_for_done(received: &Received) -> bool {
    received.redelivered && mutant::is_planted(mutant::REDELIVERED_IS_DONE)
}

fn waits(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Waiting | Outcome::Deferred | Outcome::Suspect => true,
        Outcome::Applied | Outcome::Duplicate | Outcome::Parked(_) => false,
    }
}
