//! A task as it is claimed: what is to be told to the outside, and under which key.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::time::Instant;
use uuid::Uuid;

/// What is to be told to the outside.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its id, and the idempotency key of every request that is made for it.
    pub task_id: Uuid,
    /// Whose it is.
    pub tenant_id: String,
    /// The ticket it is about.
    pub ticket_id: Uuid,
    /// The event that caused it.
    pub event_id: Uuid,
    /// The namespace of that event's id.
    pub source: String,
    /// What kind of task it is.
    pub task_type: String,
    /// What the effect wrote down for it, as it was written; empty if the provider does not look.
    pub payload: Bytes,
    /// When it was written down.
    pub created_at: DateTime<Utc>,
    /// Which try this is; 1 is the first.
    pub attempts: i64,
    /// Whether an earlier request for it may have been taken.
    pub in_doubt: bool,
    /// The database's time when it was claimed.
    pub claimed_at: DateTime<Utc>,
    /// When that answer arrived here, to count on from.
    pub(crate) claimed: Instant,
}

impl Task {
    /// The time by the database's clock, counted on from the claim.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        let passed = chrono::TimeDelta::from_std(self.claimed.elapsed());
        passed.map_or(self.claimed_at, |passed| self.claimed_at + passed)
    }
}
