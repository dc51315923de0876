//! How long and how often: the numbers behind the inbox's decisions.

use std::time::Duration;

/// How long and how often.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Wait after the first refusal; doubles with each further one.
    pub backoff_base: Duration,
    /// Longest wait between two tries.
    pub backoff_cap: Duration,
    /// Refusals until a delivery is parked.
    pub max_attempts: i64,
    /// How long an event waits for one before it that nobody knows of.
    pub order_wait: Duration,
    /// Longest time for one transaction.
    pub deadline: Duration,
    /// How long the try of a suspect is believed to be alive without being renewed.
    pub lease: Duration,
    /// Tries of one transaction that loses against others.
    pub tries: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            backoff_base: Duration::from_secs(1),
            backoff_cap: Duration::from_secs(600),
            max_attempts: 20,
            order_wait: Duration::from_secs(60),
            deadline: Duration::from_secs(30),
            lease: Duration::from_secs(10),
            tries: 6,
        }
    }
}

/// How far an id's time may be ahead of the database's clock.
pub(crate) const SKEW: Duration = Duration::from_secs(24 * 60 * 60);

impl Policy {
    /// The wait before the next try after so many refusals: full jitter above a tenth.
    pub(crate) fn backoff(&self, attempts: i64) -> Duration {
        let doublings = u32::try_from(attempts.saturating_sub(1).clamp(0, 30)).unwrap_or(30);
        let ceiling = self
            .backoff_base
            .saturating_mul(1 << doublings)
            .min(self.backoff_cap);
        ceiling.mul_f64(fastrand::f64().mul_add(0.9, 0.1))
    }

    /// How often an event that waits for its order is looked at.
    pub(crate) fn order_poll(&self) -> Duration {
        self.order_wait / 4
    }

    /// The wait before a lost transaction is tried again.
    pub(crate) fn again(&self, attempt: u32) -> Duration {
        let most = Duration::from_millis(5 << attempt.min(6));
        most.mul_f64(fastrand::f64().mul_add(0.9, 0.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_its_cap_and_never_overflows() {
        let policy = Policy::default();
        for (attempts, most) in [(0, 1), (1, 1), (2, 2), (5, 16), (11, 600), (i64::MAX, 600)] {
            let most = Duration::from_secs(most);
            for _ in 0..100 {
                let wait = policy.backoff(attempts);
                assert!(wait <= most && wait >= most / 10, "{attempts}: {wait:?}");
            }
        }
    }
}
