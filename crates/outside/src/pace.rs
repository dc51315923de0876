//! The pace of one endpoint: a bucket of requests that fills at the rate allowed.

use tokio::time::Instant;

/// How many requests may go out.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Requests a second; none is no limit.
    per_second: Option<f64>,
    filled: f64,
    at: Instant,
}

impl Pace {
    /// At most `per_second`, and as many at once; 0 is no limit.
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        Self {
            per_second: (per_second > 0).then_some(f64::from(per_second)),
            filled: f64::from(per_second),
            at: now,
        }
    }

    /// How many of `wanted` may go out now.
    pub(crate) fn permits(&mut self, wanted: usize, now: Instant) -> usize {
        let Some(per_second) = self.per_second else {
            return wanted;
        };
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.filled = passed.mul_add(per_second, self.filled).min(per_second);
        self.at = now;
        (0..wanted)
            .zip(1_u32..)
            .take_while(|(_, count)| f64::from(*count) <= self.filled)
            .count()
    }

    /// One goes out.
    pub(crate) fn spend(&mut self) {
        if self.per_second.is_some() {
            self.filled -= 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_than_the_rate_goes_out_in_any_second_after_the_first() {
        let start = Instant::now();
        let mut pace = Pace::new(10, start);
        let mut sent = 0;
        for tick in 0..500 {
            let now = start + Duration::from_millis(10 * tick);
            for _ in 0..pace.permits(16, now) {
                pace.spend();
                sent += 1;
            }
        }
        // Five seconds and the bucket that was full at the start.
        assert!((55..=60).contains(&sent), "{sent}");
    }

    #[test]
    fn a_long_pause_does_not_save_up_a_flood() {
        let start = Instant::now();
        let mut pace = Pace::new(5, start);
        assert_eq!(pace.permits(100, start + Duration::from_secs(3600)), 5);
    }

    #[test]
    fn no_limit_is_no_limit() {
        let start = Instant::now();
        let mut pace = Pace::new(0, start);
        pace.spend();
        assert_eq!(pace.permits(256, start), 256);
    }
}
