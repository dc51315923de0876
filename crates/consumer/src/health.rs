//! Whether the consumer makes progress: subscribed, the database answering, no batch stuck.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runtime::readiness::{Condition, Readiness};

use crate::metrics;

/// How old the last look at the rows may be.
const LOOKED_WITHIN: Duration = Duration::from_secs(30);

/// A batch in hand for longer is no progress.
const BATCH_WITHIN: Duration = Duration::from_secs(30);

/// The conditions of readiness.
pub(crate) struct Health {
    database: Condition,
    subscriptions: Condition,
    rows: Condition,
    channels: Mutex<BTreeMap<Channel, State>>,
}

/// One of the channels over which a queue is subscribed to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Channel {
    pub(crate) queue: String,
    /// From 1.
    number: usize,
}

impl Channel {
    pub(crate) fn new(queue: &str, number: usize) -> Self {
        Self {
            queue: queue.to_owned(),
            number,
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            1 => out.write_str(&self.queue),
            number => write!(out, "{} ({number})", self.queue),
        }
    }
}

#[derive(Debug)]
enum State {
    Idle,
    Busy(Instant),
    Paused,
    Unsubscribed(String),
}

impl State {
    fn is_subscribed(&self) -> bool {
        matches!(self, Self::Idle | Self::Busy(_))
    }
}

impl Health {
    pub(crate) fn new(readiness: &Readiness, database: Condition) -> Self {
        Self {
            database,
            subscriptions: readiness.condition("subscriptions"),
            rows: readiness.progress("rows", LOOKED_WITHIN),
            channels: Mutex::default(),
        }
    }

    /// The rows that wait were looked for: the database answers.
    pub(crate) fn looked(&self) {
        self.rows.holds();
        self.database.holds();
        self.tell();
    }

    /// The database did not answer.
    pub(crate) fn database_failed(&self, reason: &str) {
        self.database.fails(reason);
    }

    pub(crate) fn unsubscribed(&self, channel: &Channel, reason: &str) {
        self.set(channel, State::Unsubscribed(reason.to_owned()));
    }

    pub(crate) fn paused(&self, channel: &Channel) {
        self.set(channel, State::Paused);
    }

    /// Subscribed, or done with a batch.
    pub(crate) fn idle(&self, channel: &Channel) {
        self.set(channel, State::Idle);
    }

    pub(crate) fn busy(&self, channel: &Channel) {
        let known = matches!(self.channels().get(channel), Some(State::Busy(_)));
        if !known {
            self.set(channel, State::Busy(Instant::now()));
        }
    }

    fn set(&self, channel: &Channel, state: State) {
        let is_subscribed = state.is_subscribed();
        let mut channels = self.channels();
        let before = channels.insert(channel.clone(), state);
        if is_subscribed && before.is_some_and(|before| before.is_subscribed()) {
            return;
        }
        let of_queue = channels
            .iter()
            .filter(|(one, _)| one.queue == channel.queue);
        let subscribed = of_queue.filter(|(_, state)| state.is_subscribed()).count();
        drop(channels);
        metrics::subscribed(&channel.queue, subscribed);
        self.tell();
    }

    fn tell(&self) {
        let obstacle = self
            .channels()
            .iter()
            .find_map(|(channel, state)| match state {
                State::Idle | State::Paused => None,
                State::Busy(since) if since.elapsed() < BATCH_WITHIN => None,
                State::Busy(since) => {
                    let seconds = since.elapsed().as_secs();
                    Some(format!("{channel}: a batch in hand for {seconds} s"))
                }
                State::Unsubscribed(reason) => Some(format!("{channel}: {reason}")),
            });
        match obstacle {
            None => self.subscriptions.holds(),
            Some(reason) => self.subscriptions.fails(reason),
        }
    }

    fn channels(&self) -> MutexGuard<'_, BTreeMap<Channel, State>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
