//! When to take a batch: subscribed or not, paused, stopping, with how many in advance.

use std::time::Duration;

use broker::{Batch, BatchLimits, Broker, BrokerError, Deliveries, Ended, Look};
use futures_util::future::BoxFuture;
use runtime::backoff::Backoff;

use crate::cycle::{Cycle, NotAcked, Work};
use crate::prefetch::Ladder;

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(5);
/// How often an idle subscription looks whether it is still there.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const LINK_WITHIN: Duration = Duration::from_secs(5);

/// One queue's subscription, taken again whenever it ends.
pub(crate) struct Subscription {
    pub(crate) cycle: Cycle,
    pub(crate) ladder: Ladder,
}

/// Why a subscription is no longer there.
enum Over {
    /// As asked: the process stops, or the effect is paused.
    Asked,
    /// Otherwise; why.
    Lost(String),
}

impl Subscription {
    /// Keeps the subscription up until the process stops.
    pub(crate) async fn run(mut self) {
        let shared = self.cycle.shared.clone();
        let channel = self.cycle.channel.clone();
        let mut backoff = Backoff::new(BASE, CAP);
        while !shared.stop.is_cancelled() {
            if is_paused(&self.cycle) {
                shared.health.paused(&channel);
                resumed(&self.cycle).await;
                continue;
            }
            match self.subscribed(&mut backoff).await {
                Over::Asked => {}
                Over::Lost(reason) => {
                    shared.health.unsubscribed(&channel, &reason);
                    if backoff.attempt() == 0 {
                        tracing::warn!(%channel, reason, "not subscribed; trying again");
                    }
                    tokio::select! {
                        () = tokio::time::sleep(backoff.next_delay()) => {}
                        () = shared.stop.cancelled() => {}
                    }
                }
            }
        }
    }

    /// One subscription from its beginning to its end.
    async fn subscribed(&mut self, backoff: &mut Backoff) -> Over {
        let shared = self.cycle.shared.clone();
        // Whoever cannot write receipts should not take deliveries from others.
        if let Err(error) = crate::pauses::read(&shared.database).await {
            shared.health.database_failed(&error.to_string());
            return Over::Lost(format!("waits for the database: {error}"));
        }
        let queue = &self.cycle.queue;
        let mut deliveries = match subscribe(&shared.broker, queue, self.ladder.now()).await {
            Ok(deliveries) => deliveries,
            Err(error) => return Over::Lost(error.to_string()),
        };
        shared.health.idle(&self.cycle.channel);
        tracing::info!(queue, prefetch = self.ladder.now(), "subscribed");
        let over = self.take_batches(&mut deliveries, backoff).await;
        match over {
            Ended::Cancelled => Over::Asked,
            ended @ (Ended::QueueGone
            | Ended::Closed(_)
            | Ended::LinkLost { .. }
            | Ended::Abandoned) => Over::Lost(ended.to_string()),
        }
    }

    async fn take_batches(&mut self, deliveries: &mut Deliveries, backoff: &mut Backoff) -> Ended {
        let Self { cycle, ladder } = self;
        let limits = BatchLimits {
            deliveries: cycle.shared.config.batch_size,
            bytes: cycle.shared.config.batch_bytes,
            linger: Duration::ZERO,
        };
        let mut finishing = false;
        loop {
            let asked = match next(cycle, deliveries, limits, finishing).await {
                Next::Batch(Ok(batch)) => match cycle.handle(batch).await {
                    Ok(acked) => {
                        backoff.reset();
                        let change = ladder.acknowledged(acked.deliveries, acked.bytes);
                        Asked::of_prefetch(change)
                    }
                    Err(NotAcked::Ended(ended)) => return ended,
                    Err(NotAcked::Stopping) => return Ended::Cancelled,
                },
                Next::Batch(Err(ended)) => return ended,
                Next::Interrupted => Asked::Cancel,
            };
            match asked {
                Asked::Nothing => {}
                Asked::Prefetch(prefetch) => deliveries.set_prefetch(prefetch).await,
                Asked::Cancel => {
                    finishing = true;
                    deliveries.cancel().await;
                }
            }
        }
    }
}

/// The next batch, unless the process stops or the effect is paused before.
fn next<'a>(
    cycle: &'a Cycle,
    deliveries: &'a mut Deliveries,
    limits: BatchLimits,
    finishing: bool,
) -> BoxFuture<'a, Next<'a>> {
    Box::pin(async move {
        tokio::select! {
            biased;
            () = asked_to_leave(cycle), if !finishing => Next::Interrupted,
            batch = deliveries.batch(limits) => Next::Batch(batch),
        }
    })
}

/// Waits until the process stops, the effect is paused, or nobody is subscribed to the queue.
async fn asked_to_leave(cycle: &Cycle) {
    tokio::select! {
        () = changed_until(cycle, is_paused) => {}
        () = forgotten(cycle) => {}
    }
}

/// Waits until the queue has no consumer. It was seen with RabbitMQ 3.10 that nobody is told when a
/// quorum queue is deleted and soon made again.
async fn forgotten(cycle: &Cycle) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let look = cycle.shared.broker.look_at(&cycle.queue).await;
        if let Ok(Look::Missing | Look::Present { consumers: 0, .. }) = look {
            tracing::warn!(
                queue = cycle.queue,
                "the subscription is gone; subscribing again"
            );
            return;
        }
    }
}

/// Waits until the process stops or the effect is no longer paused.
async fn resumed(cycle: &Cycle) {
    changed_until(cycle, |cycle| !is_paused(cycle)).await;
}

async fn changed_until(cycle: &Cycle, done: fn(&Cycle) -> bool) {
    let mut paused = cycle.shared.paused.clone();
    loop {
        // Before the look, so that a change during it is seen.
        paused.mark_unchanged();
        if cycle.shared.stop.is_cancelled() || done(cycle) {
            return;
        }
        tokio::select! {
            _ = paused.changed() => {}
            () = cycle.shared.stop.cancelled() => {}
        }
    }
}

fn is_paused(cycle: &Cycle) -> bool {
    match &cycle.work {
        Work::Effect(effect) => cycle.shared.is_paused(&cycle.pool, effect.name().as_str()),
        Work::Dead => false,
    }
}

/// Waits for the link and subscribes. Boxed: the compiler cannot see through the borrows of both
/// calls that the future may change threads.
fn subscribe<'a>(
    broker: &'a Broker,
    queue: &'a str,
    prefetch: u16,
) -> BoxFuture<'a, Result<Deliveries, BrokerError>> {
    Box::pin(async move {
        // Whatever it says, subscribing says it better.
        let _ = broker.connected(LINK_WITHIN).await;
        broker.deliveries(queue, prefetch).await
    })
}

enum Next<'a> {
    Batch(Result<Batch<'a>, Ended>),
    Interrupted,
}

enum Asked {
    Nothing,
    Prefetch(u16),
    Cancel,
}

impl Asked {
    fn of_prefetch(change: Option<u16>) -> Self {
        change.map_or(Self::Nothing, Self::Prefetch)
    }
}
