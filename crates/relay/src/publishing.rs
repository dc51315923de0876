//! Publishing a batch: waves on a channel of one's own, and the culprit found when it dies.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use broker::{BrokerError, Doubt, Publish, PublishOutcome, Publishers, Refusal, Route, Wave};
use event::Message;
use outbox::{ClaimedBatch, ClaimedEvent, mutant};
use tokio_util::sync::CancellationToken;

use crate::crash;
use crate::decide::{Fault, fault};
use crate::leases::Lease;
use crate::metrics;
use crate::waves::Waves;

/// More waves than this keep lanes from others; what is left goes back.
const MOST_WAVES: usize = 32;

/// Publishes the batches of one worker, one at a time.
pub struct Sender<P: Publishers> {
    publishers: P,
    publisher: Option<P::Publisher>,
    confirm_timeout: Duration,
}

/// What came of a batch: an outcome for each event that was sent, by its index.
#[derive(Debug, Default)]
pub struct Published {
    /// One for each event; none if it was not sent, and so goes back as it is.
    pub outcomes: Vec<Option<PublishOutcome>>,
    /// How many waves there were.
    pub waves: usize,
    /// Why there is no publisher, if that is what ended it.
    pub outage: Option<BrokerError>,
}

/// What a batch must not go on without.
#[derive(Debug, Clone, Copy)]
pub struct Leave<'a> {
    /// Its lease.
    pub lease: &'a Lease,
    /// Once this is cancelled no further wave begins.
    pub stop: &'a CancellationToken,
}

impl Leave<'_> {
    fn may_go_on(self) -> bool {
        !self.stop.is_cancelled() && self.lease.is_held()
    }
}

impl<P: Publishers> Sender<P> {
    /// One that makes its channels from `publishers`.
    pub fn new(publishers: P, confirm_timeout: Duration) -> Self {
        Self {
            publishers,
            publisher: None,
            confirm_timeout,
        }
    }

    /// Makes sure that there is a channel, before anything is claimed for it.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn prepare(&mut self) -> Result<(), BrokerError> {
        if self.publisher.is_none() {
            self.publisher = Some(self.publishers.publisher().await?);
        }
        Ok(())
    }

    /// Sends the events of a batch in waves, for as long as it may.
    pub async fn publish(&mut self, batch: &ClaimedBatch, leave: Leave<'_>) -> Published {
        let events = batch.events();
        let mut waves = Waves::new(events);
        let mut published = Published {
            outcomes: vec![None; events.len()],
            ..Published::default()
        };
        while published.waves < MOST_WAVES && leave.may_go_on() {
            let Some(wave) = waves.next_wave() else {
                break;
            };
            published.waves += 1;
            let sent = match self.wave(events, &wave).await {
                Ok(sent) => sent,
                Err(error) => {
                    published.outage = Some(error);
                    break;
                }
            };
            let judged = self.judge(events, &mut published, sent, leave).await;
            judged
                .confirmed
                .into_iter()
                .for_each(|index| waves.confirmed(index));
            waves.stop_pools(events, &judged.refusing);
            if judged.is_link_lost {
                break;
            }
        }
        published
    }

    /// One wave: what is no message is refused here, the rest goes out at once.
    async fn wave(
        &mut self,
        events: &[ClaimedEvent],
        wave: &[usize],
    ) -> Result<Vec<Sent>, BrokerError> {
        let mut sent = Vec::with_capacity(wave.len());
        let mut indices = Vec::with_capacity(wave.len());
        let mut messages = Vec::with_capacity(wave.len());
        for index in wave {
            match events.get(*index).map(message_of) {
                Some(Ok(message)) => {
                    indices.push(*index);
                    messages.push(message);
                }
                Some(Err(outcome)) => sent.push((*index, outcome)),
                None => {}
            }
        }
        if !messages.is_empty() {
            let began = Instant::now();
            let outcomes = self.send(&messages).await?;
            metrics::wave(messages.len(), began.elapsed());
            sent.extend(indices.into_iter().zip(outcomes));
        }
        Ok(sent)
    }

    async fn send(&mut self, messages: &[Message]) -> Result<Vec<PublishOutcome>, BrokerError> {
        self.prepare().await?;
        let Some(publisher) = self.publisher.take() else {
            return Err(BrokerError::Unavailable("no channel".to_owned()));
        };
        let deadline = tokio::time::Instant::now() + self.confirm_timeout();
        crash::point(crash::PUBLISHING);
        let Wave {
            outcomes,
            publisher,
        } = publisher
            .publish_wave(Route::Events, messages, deadline)
            .await;
        crash::point(crash::CONFIRMED_NOT_SETTLED);
        // A channel remembers that a quorum queue refused, until that tells it otherwise; one made
        // after a limit was lifted does not.
        let is_refused = outcomes.contains(&PublishOutcome::Refused(Refusal::Nack));
        self.publisher = publisher.filter(|_| !is_refused);
        Ok(outcomes)
    }

    fn confirm_timeout(&self) -> Duration {
        if mutant::is_planted(mutant::MARK_BEFORE_CONFIRM) {
            return Duration::ZERO;
        }
        self.confirm_timeout
    }

    /// Takes the answers in. Where the broker closed the channel under several events, each of them
    /// is sent again alone until the one shows that it closes for.
    async fn judge(
        &mut self,
        events: &[ClaimedEvent],
        published: &mut Published,
        sent: Vec<Sent>,
        leave: Leave<'_>,
    ) -> Judged {
        let mut judged = Judged::default();
        let mut suspects = Vec::new();
        for (index, outcome) in sent {
            match outcome {
                PublishOutcome::Unknown(Doubt::Closed(_)) => suspects.push((index, outcome)),
                PublishOutcome::Confirmed
                | PublishOutcome::Unroutable { .. }
                | PublishOutcome::Refused(_)
                | PublishOutcome::Unknown(_) => judged.take(events, published, (index, outcome)),
            }
        }
        let mut is_at_large = true;
        for (index, outcome) in suspects {
            let alone = match events.get(index).map(message_of) {
                Some(Ok(message)) if is_at_large && leave.may_go_on() => self.alone(&message).await,
                Some(_) | None => None,
            };
            let outcome = alone.unwrap_or(outcome);
            is_at_large &= !ends_the_search(&outcome);
            judged.take(events, published, (index, outcome));
        }
        judged
    }

    /// One event on a connection of its own. None if there is no such connection.
    async fn alone(&self, message: &Message) -> Option<PublishOutcome> {
        let publisher = self.publishers.lone_publisher().await.ok()?;
        let deadline = tokio::time::Instant::now() + self.confirm_timeout;
        let message = std::slice::from_ref(message);
        let wave = publisher
            .publish_wave(Route::Events, message, deadline)
            .await;
        wave.outcomes.into_iter().next()
    }
}

type Sent = (usize, PublishOutcome);

/// What the answers of a wave mean for the next one.
#[derive(Debug, Default)]
struct Judged {
    confirmed: Vec<usize>,
    refusing: HashSet<event::PoolName>,
    is_link_lost: bool,
}

impl Judged {
    fn take(&mut self, events: &[ClaimedEvent], published: &mut Published, (index, outcome): Sent) {
        match fault(&outcome, true) {
            Fault::Nobody => self.confirmed.push(index),
            Fault::Link => self.is_link_lost = true,
            Fault::Destination => self
                .refusing
                .extend(events.get(index).map(|event| event.pool.clone())),
            Fault::Event => {}
        }
        if let Some(place) = published.outcomes.get_mut(index) {
            *place = Some(outcome);
        }
    }
}

/// The culprit is found, or the link or the destination is to blame: sending more of them alone
/// would close a channel each.
fn ends_the_search(outcome: &PublishOutcome) -> bool {
    match outcome {
        PublishOutcome::Confirmed
        | PublishOutcome::Unroutable { .. }
        | PublishOutcome::Refused(Refusal::Invalid { .. }) => false,
        PublishOutcome::Refused(Refusal::Nack | Refusal::Closed(_))
        | PublishOutcome::Unknown(_) => true,
    }
}

fn message_of(event: &ClaimedEvent) -> Result<Message, PublishOutcome> {
    let invalid = |reason: String| PublishOutcome::Refused(Refusal::Invalid { reason });
    let content = event
        .content
        .as_ref()
        .map_err(|error| invalid(error.to_string()))?;
    Message::of(content, &event.pool).map_err(|error| invalid(error.to_string()))
}
