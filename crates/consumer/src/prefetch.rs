//! How many deliveries of an effect may be unacknowledged: few at first, more while messages are
//! small, one at a time after a stop that was not clean.

use runtime::Settings;

/// After an unclean stop something delivered may have been the reason: whatever else is in the
/// window spends its deliveries with it.
const CAREFUL: [u16; 3] = [1, 8, 32];

/// Bounds of the prefetch.
#[derive(Debug, Clone, Copy)]
pub struct Prefetch {
    /// At a start after a clean stop.
    pub first: u16,
    /// The most.
    pub most: u16,
    /// How many bytes of bodies it should not exceed.
    pub bytes: usize,
}

/// The prefetch of one subscription as it is now.
#[derive(Debug, Clone)]
pub(crate) struct Ladder {
    bounds: Prefetch,
    step: u16,
    /// Deliveries acknowledged on this step.
    done: usize,
    /// Mean size of a body, moving with what comes.
    mean_bytes: usize,
}

impl Prefetch {
    pub(crate) fn of(settings: &Settings) -> Self {
        let number = |name| u16::try_from(settings.number(name)).unwrap_or(u16::MAX);
        Self {
            first: number("prefetch_first"),
            most: number("prefetch_most"),
            bytes: settings.size("prefetch_bytes"),
        }
    }
}

impl Ladder {
    pub(crate) fn new(bounds: Prefetch, careful: bool) -> Self {
        let step = if careful { CAREFUL[0] } else { bounds.first };
        Self {
            bounds,
            step: step.min(bounds.most),
            done: 0,
            mean_bytes: 0,
        }
    }

    pub(crate) fn now(&self) -> u16 {
        self.step
    }

    /// A batch was acknowledged. Some if the prefetch should be another one from now on.
    pub(crate) fn acknowledged(&mut self, deliveries: usize, bytes: usize) -> Option<u16> {
        let mean = bytes / deliveries.max(1);
        self.mean_bytes = match self.mean_bytes {
            0 => mean,
            // Growth counts at once, since it is what fills the memory; what shrinks may grow again.
            before => usize::midpoint(before, mean).max(mean),
        };
        self.done += deliveries;
        let fits = self.fits();
        let next = if fits <= self.step / 2 {
            fits
        } else if self.done >= usize::from(self.step) {
            self.up().min(fits)
        } else {
            return None;
        };
        // A small step up or down is not worth a new subscription.
        let worth = next <= self.step / 2 || next > self.step;
        if !worth {
            return None;
        }
        self.step = next;
        self.done = 0;
        Some(next)
    }

    fn up(&self) -> u16 {
        CAREFUL
            .into_iter()
            .find(|step| *step > self.step)
            .unwrap_or(self.bounds.most)
            .min(self.bounds.most)
    }

    /// How many messages of the mean size stay within the bytes.
    fn fits(&self) -> u16 {
        let count = self.bounds.bytes / self.mean_bytes.max(1);
        u16::try_from(count)
            .unwrap_or(u16::MAX)
            .clamp(1, self.bounds.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Prefetch = Prefetch {
        first: 32,
        most: 500,
        bytes: 8 << 20,
    };

    fn climb(mut ladder: Ladder, bytes: usize) -> Vec<u16> {
        let mut steps = vec![ladder.now()];
        for _ in 0..100 {
            let full = usize::from(ladder.now());
            steps.extend(ladder.acknowledged(full, full * bytes));
        }
        steps
    }

    #[test]
    fn small_messages_raise_it_and_an_unclean_stop_starts_at_one() {
        assert_eq!(climb(Ladder::new(BOUNDS, false), 1000), [32, 500]);
        assert_eq!(climb(Ladder::new(BOUNDS, true), 1000), [1, 8, 32, 500]);
    }

    #[test]
    fn large_messages_keep_it_within_the_bytes() {
        assert_eq!(climb(Ladder::new(BOUNDS, false), 1 << 20), [32, 8]);
        assert_eq!(climb(Ladder::new(BOUNDS, true), 1 << 20), [1, 8]);
        assert_eq!(climb(Ladder::new(BOUNDS, false), 100 << 20), [32, 1]);
    }

    #[test]
    fn it_falls_when_messages_grow() {
        let mut ladder = Ladder::new(BOUNDS, false);
        assert_eq!(ladder.acknowledged(32, 32_000), Some(500));
        let mut steps = Vec::new();
        for _ in 0..20 {
            steps.extend(ladder.acknowledged(8, 8 << 20));
        }
        assert_eq!(steps.last(), Some(&8), "{steps:?}");
        assert!(steps.is_sorted_by(|a, b| a > b), "{steps:?}");
    }

    #[test]
    fn half_a_step_is_not_yet_a_reason() {
        let mut ladder = Ladder::new(BOUNDS, true);
        assert_eq!(ladder.acknowledged(1, 100), Some(8));
        assert_eq!(ladder.acknowledged(4, 400), None);
        assert_eq!(ladder.acknowledged(4, 400), Some(32));
    }
}
