//! How long to wait before the next try: a pure function of the attempt.

use std::time::Duration;

/// 2^62 of the smallest base is already longer than any cap; more would overflow.
const LAST_EXPONENT: u32 = 62;

/// The wait after so many failed tries (0 is the first): `base` doubling up to `cap`, of which
/// `jitter` (0 to 1, drawn by the caller) picks a share: full jitter, so that many who failed
/// together do not come back together.
#[must_use]
pub fn delay(attempt: u32, base: Duration, cap: Duration, jitter: f64) -> Duration {
    let ceiling = ceiling(attempt, base, cap);
    let share = if jitter.is_finite() {
        jitter.clamp(0.0, 1.0)
    } else {
        1.0
    };
    ceiling.mul_f64(share).min(ceiling)
}

/// The longest wait after so many failed tries, without jitter.
#[must_use]
pub fn ceiling(attempt: u32, base: Duration, cap: Duration) -> Duration {
    let factor = 1_u64 << attempt.min(LAST_EXPONENT);
    let nanos = base.as_nanos().saturating_mul(u128::from(factor));
    u64::try_from(nanos).map_or(cap, |nanos| Duration::from_nanos(nanos).min(cap))
}

/// A row of tries against something that is away: each wait at least a tenth of its ceiling, so
/// that jitter never makes it a hot loop.
#[derive(Debug, Clone)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    attempt: u32,
}

impl Backoff {
    /// Starts at `base`, never waits longer than `cap`.
    #[must_use]
    pub fn new(base: Duration, cap: Duration) -> Self {
        Self {
            base,
            cap,
            attempt: 0,
        }
    }

    /// The wait before the next try, each time a longer one.
    pub fn next_delay(&mut self) -> Duration {
        let jitter = fastrand::f64().mul_add(0.9, 0.1);
        let delay = delay(self.attempt, self.base, self.cap, jitter);
        self.attempt = self.attempt.saturating_add(1);
        delay
    }

    /// How often it was asked since the last success.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// After a success the next failure starts from `base` again.
    pub fn reset(&mut self) {
        self.attempt = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn it_doubles_up_to_the_cap() {
        let waits: Vec<u64> = (0..8)
            .map(|attempt| delay(attempt, SECOND, MINUTE, 1.0).as_secs())
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn a_backoff_starts_over_after_a_success() {
        let mut backoff = Backoff::new(SECOND, MINUTE);
        for _ in 0..1000 {
            let wait = backoff.next_delay();
            assert!(wait >= SECOND / 10 && wait <= MINUTE);
        }
        backoff.reset();
        assert!(backoff.next_delay() <= SECOND);
    }

    proptest! {
        #[test]
        fn no_attempt_overflows_or_passes_the_cap(
            attempt: u32,
            base_ms in 1_u64..100_000_000,
            cap_ms in 1_u64..u64::MAX / 2_000_000,
            jitter: f64,
        ) {
            let cap = Duration::from_millis(cap_ms);
            let base = Duration::from_millis(base_ms);
            prop_assert!(delay(attempt, base, cap, jitter) <= cap);
            prop_assert!(ceiling(attempt, base, cap) >= base.min(cap));
            prop_assert!(ceiling(attempt.saturating_add(1), base, cap) >= ceiling(attempt, base, cap));
        }
    }
}
