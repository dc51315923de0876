//! A transaction again, when it only met another one.

use std::error::Error;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::error::{Remedy, remedy_of};
use crate::backoff::Backoff;

const BASE: Duration = Duration::from_millis(5);
const CAP: Duration = Duration::from_millis(500);

/// The tries of one transaction, under one deadline. The caller's loop:
///
/// ```text
/// let mut again = Again::within(deadline);
/// loop {
///     match database.transaction(again.left(), async |transaction| work(transaction).await).await {
///         Err(error) => again.after(&error).ok_or(error)?.await,
///         done => return done,
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Again {
    until: Instant,
    backoff: Backoff,
}

impl Again {
    /// All tries together end by `deadline` from now.
    #[must_use]
    pub fn within(deadline: Duration) -> Self {
        Self {
            until: Instant::now() + deadline,
            backoff: Backoff::new(BASE, CAP),
        }
    }

    /// What is left for the next try.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// The wait before the next try, if one helps against this error and there is time for it.
    pub fn after(&mut self, error: &(dyn Error + 'static)) -> Option<Sleep> {
        let wait = self.backoff.next_delay();
        let helps = remedy_of(error) == Some(Remedy::Again);
        (helps && wait < self.left()).then(|| sleep(wait))
    }
}
