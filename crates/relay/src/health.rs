//! Whether the relay makes progress, and one line in the log for each change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use runtime::readiness::{Condition, Readiness};
use runtime::start::told;

use crate::metrics;
use crate::store::StoreError;

/// How old the last answer of the outbox may be.
const LOOKED_WITHIN: Duration = Duration::from_secs(30);

/// The conditions of readiness.
#[derive(Debug)]
pub(crate) struct Health {
    outbox: Condition,
    broker: Condition,
    backlog: Condition,
    is_failing: AtomicBool,
}

impl Health {
    pub(crate) fn new(readiness: &Readiness) -> Self {
        Self {
            outbox: readiness.progress("outbox", LOOKED_WITHIN),
            broker: readiness.condition("broker"),
            backlog: readiness.condition("backlog"),
            is_failing: AtomicBool::new(false),
        }
    }

    /// The outbox was looked at.
    pub(crate) fn looked(&self) {
        self.outbox.holds();
        if self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("the outbox answers again");
        }
    }

    /// The outbox could not be asked or told something. The first time is logged, the others are
    /// counted: an outage may last.
    pub(crate) fn database_failed(&self, error: &StoreError) {
        metrics::store_failed();
        let error = told(error);
        self.outbox.fails(error.clone());
        if self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::debug!(error, "the outbox fails");
        } else {
            tracing::warn!(error, "the outbox fails; trying again");
        }
    }

    /// The link to the broker, and the pools that refuse.
    pub(crate) fn broker(&self, obstacle: Option<String>) {
        match obstacle {
            None => self.broker.holds(),
            Some(reason) => self.broker.fails(reason),
        }
    }

    /// The oldest event that is due, against what is allowed.
    pub(crate) fn oldest_due(&self, age: Duration, most: Duration) {
        if age <= most {
            self.backlog.holds();
        } else {
            let (age, most) = (age.as_secs(), most.as_secs());
            self.backlog.fails(format!(
                "the oldest due event waits for {age} s, {most} s are allowed"
            ));
        }
    }
}
