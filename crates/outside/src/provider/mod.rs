//! What a foreign system is to the loop: something that takes a task under a key, and can perhaps
//! be asked for that key.

mod address;
mod answer;
mod body;
mod local;
mod signature;
mod webhook;

use std::fmt::Debug;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::task::Task;

pub use local::Local;
pub use signature::{Secret, Secrets};
pub use webhook::{Invalid, Target, Webhook};

/// What came of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The provider has taken it.
    Delivered,
    /// The provider will never take it as it is.
    Refused {
        /// What the refusal is about.
        whose: Whose,
        /// What it said.
        told: String,
    },
    /// Surely not taken: it never went out, or the provider said so.
    Failed {
        /// What went wrong.
        told: String,
        /// How long the provider asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// Perhaps taken: the request went out and no answer tells.
    Unknown {
        /// What went wrong.
        told: String,
    },
}

/// What a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// This task's content; others may be taken.
    Task,
    /// The endpoint as it is set up; others would be refused as well.
    Endpoint,
}

/// What a provider says when it is asked for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Knowledge {
    /// It has taken a task under that key.
    Taken,
    /// It has never seen that key.
    NotKnown,
    /// It could not be asked just now.
    NoAnswer {
        /// What went wrong.
        told: String,
    },
    /// It cannot be asked at all.
    CannotBeAsked,
}

/// A foreign system. It must honour the key: a second request under the same key does nothing new.
pub trait Provider: Debug + Send + Sync {
    /// Makes one request for the task, within bounds of its own.
    fn send<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Outcome>;

    /// Asks what it knows of the task's key.
    fn ask<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Knowledge> {
        let _ = task;
        Box::pin(std::future::ready(Knowledge::CannotBeAsked))
    }

    /// Whether the payload is looked at. If not it is not read from the database either.
    fn needs_payload(&self) -> bool {
        true
    }

    /// The longest that asking and sending may take together; the lease must be longer.
    fn longest(&self) -> Duration;
}
