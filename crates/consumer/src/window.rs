//! The dedup window: receipts have to outlive whatever may still be delivered.

use std::time::Duration;

use runtime::Settings;

/// How far an id may be ahead of the database's clock.
const SKEW: Duration = Duration::from_secs(86_400);

/// How long receipts are kept, and what that has to outlive.
#[derive(Debug, Clone)]
pub struct Window {
    /// How long receipts are kept.
    pub kept: Duration,
    /// How far ahead events may be delayed.
    pub max_delay: Duration,
    /// How long the relay tries an event.
    pub park_after: Duration,
    /// The oldest event that may be redriven or replayed.
    pub oldest_replay: Duration,
    /// How long a message may stay in a queue.
    pub max_queue_time: Duration,
}

impl Window {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            kept: settings.duration("dedup_window"),
            max_delay: settings.duration("max_delay"),
            park_after: settings.duration("park_after"),
            oldest_replay: settings.duration("oldest_replay"),
            max_queue_time: settings.duration("max_queue_time"),
        }
    }

    /// The age that a delivery may reach.
    #[must_use]
    pub fn oldest_delivery(&self) -> Duration {
        [
            self.max_delay,
            self.park_after,
            self.oldest_replay,
            self.max_queue_time,
        ]
        .into_iter()
        .fold(SKEW, Duration::saturating_add)
    }

    /// Whether receipts outlive every delivery.
    ///
    /// # Errors
    /// What would have to be longer, or shorter.
    pub fn check(&self) -> Result<(), String> {
        let oldest = self.oldest_delivery();
        if self.kept > oldest {
            return Ok(());
        }
        let days = |span: Duration| span.as_secs_f64() / 86_400.0;
        Err(format!(
            "the dedup window of {:.1} days does not outlive redelivery: it must be above {:.1} \
             days, which is a day of skew with max_delay, park_after, oldest_replay and \
             max_queue_time",
            days(self.kept),
            days(oldest),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn a_window_that_redelivery_outlives_is_refused() {
        let window = |days: u32| Window {
            kept: DAY * days,
            max_delay: DAY * 7,
            park_after: DAY,
            oldest_replay: DAY * 14,
            max_queue_time: DAY * 7,
        };
        assert_eq!(window(35).check(), Ok(()));
        assert_eq!(window(31).check(), Ok(()));
        let refused = window(30).check().expect_err("as long is not longer");
        assert!(refused.contains("30.0 days"), "{refused}");
    }
}
