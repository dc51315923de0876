//! How long to wait before looking for work again: short after work, longer when idle.

use std::time::Duration;

/// An adaptive wait.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    least: Duration,
    most: Duration,
    next: Duration,
}

impl Pace {
    pub(crate) fn new(least: Duration, most: Duration) -> Self {
        Self {
            least,
            most,
            next: least,
        }
    }

    /// There was work: the next wait is the shortest.
    pub(crate) fn worked(&mut self) {
        self.next = self.least;
    }

    /// There was none: how long to wait. Doubles each time.
    pub(crate) fn idled(&mut self) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.most);
        wait.min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_when_idle_and_starts_over_after_work() {
        let ms = Duration::from_millis;
        let mut pace = Pace::new(ms(1), ms(50));
        let waits: Vec<_> = (0..8).map(|_| pace.idled().as_millis()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 50, 50]);
        pace.worked();
        assert_eq!(pace.idled(), ms(1));
    }
}
