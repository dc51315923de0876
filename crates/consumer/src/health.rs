//! Whether the consumer makes progress: subscribed, the database answering, no batch stuck.

use std::collections::BTreeMap;
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
    queues: Mutex<BTreeMap<String, Queue>>,
}

#[derive(Debug, Clone)]
enum Queue {
    Idle,
    Busy(Instant),
    Paused,
    Unsubscribed(String),
}

impl Health {
    pub(crate) fn new(readiness: &Readiness, database: Condition) -> Self {
        Self {
            database,
            subscriptions: readiness.condition("subscriptions"),
            rows: readiness.progress("rows", LOOKED_WITHIN),
            queues: Mutex::default(),
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

    pub(crate) fn unsubscribed(&self, queue: &str, reason: &str) {
        self.set(queue, Queue::Unsubscribed(reason.to_owned()));
    }

    pub(crate) fn paused(&self, queue: &str) {
        self.set(queue, Queue::Paused);
    }

    /// Subscribed, or done with a batch.
    pub(crate) fn idle(&self, queue: &str) {
        self.set(queue, Queue::Idle);
    }

    pub(crate) fn busy(&self, queue: &str) {
        let known = matches!(self.queues().get(queue), Some(Queue::Busy(_)));
        if !known {
            self.set(queue, Queue::Busy(Instant::now()));
        }
    }

    fn set(&self, queue: &str, state: Queue) {
        let subscribed = matches!(state, Queue::Idle | Queue::Busy(_));
        metrics::subscribed(queue, subscribed);
        let before = self.queues().insert(queue.to_owned(), state.clone());
        let settled = |state: &Queue| matches!(state, Queue::Idle | Queue::Busy(_));
        if !settled(&state) || !before.as_ref().is_some_and(settled) {
            self.tell();
        }
    }

    fn tell(&self) {
        let obstacle = self.queues().iter().find_map(|(queue, state)| match state {
            Queue::Idle | Queue::Paused => None,
            Queue::Busy(since) if since.elapsed() < BATCH_WITHIN => None,
            Queue::Busy(since) => {
                let seconds = since.elapsed().as_secs();
                Some(format!("{queue}: a batch in hand for {seconds} s"))
            }
            Queue::Unsubscribed(reason) => Some(format!("{queue}: {reason}")),
        });
        match obstacle {
            None => self.subscriptions.holds(),
            Some(reason) => self.subscriptions.fails(reason),
        }
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<String, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
