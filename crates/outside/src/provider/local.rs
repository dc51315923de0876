//! The provider that is no foreign system: a task is delivered once it is written down.

use std::time::Duration;

use futures_util::future::BoxFuture;

use super::{Knowledge, Outcome, Provider};
use crate::task::Task;

/// Completes every task.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local;

impl Provider for Local {
    fn send<'a>(&'a self, _: &'a Task) -> BoxFuture<'a, Outcome> {
        Box::pin(std::future::ready(Outcome::Delivered))
    }

    fn ask<'a>(&'a self, _: &'a Task) -> BoxFuture<'a, Knowledge> {
        // Nothing outside of the row itself could have been told anything.
        Box::pin(std::future::ready(Knowledge::NotKnown))
    }

    fn needs_payload(&self) -> bool {
        false
    }

    fn longest(&self) -> Duration {
        Duration::ZERO
    }
}
