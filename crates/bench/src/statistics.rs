//! Medians, spreads and latencies.

use std::time::Duration;

use hdrhistogram::Histogram;

/// A figure measured several times.
#[derive(Debug, Clone, Default)]
pub struct Series(Vec<f64>);

impl Series {
    /// Adds one measurement.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The middle one; the mean of the middle two if there is none. 0 without measurements.
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match (sorted.len() % 2, sorted.get(middle)) {
            (_, None) => 0.0,
            (0, Some(upper)) => f64::midpoint(sorted[middle - 1], *upper),
            (_, Some(only)) => *only,
        }
    }

    /// The least.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.0.iter().copied().min_by(f64::total_cmp).unwrap_or(0.0)
    }

    /// The greatest.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.0.iter().copied().max_by(f64::total_cmp).unwrap_or(0.0)
    }

    /// Each measurement divided by the one of another series that was taken beside it.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        let pairs = self.0.iter().zip(&other.0);
        Self(pairs.map(|(one, other)| one / other).collect())
    }
}

impl FromIterator<f64> for Series {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// Latencies to the microsecond, up to a minute; longer ones count as a minute.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

const LONGEST: Duration = Duration::from_secs(60);

impl Default for Latencies {
    fn default() -> Self {
        // Bounds and digits are constants that it accepts.
        let empty = Histogram::new_with_bounds(1, 60_000_000, 3);
        Self(empty.unwrap_or_else(|error| unreachable!("{error}")))
    }
}

impl Latencies {
    /// Adds one.
    pub fn push(&mut self, latency: Duration) {
        let bounded = latency.min(LONGEST).as_micros();
        self.0
            .saturating_record(u64::try_from(bounded).unwrap_or(u64::MAX));
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.0.add(&other.0);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// In milliseconds, what `share` of them do not exceed.
    #[must_use]
    pub fn quantile_ms(&self, share: f64) -> f64 {
        milliseconds(self.0.value_at_quantile(share))
    }

    /// The longest, in milliseconds.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        milliseconds(self.0.max())
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a minute in microseconds has 26 bits"
)]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

/// A count as a figure to divide.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "no bench counts to 2^52")]
pub fn figure(count: u64) -> f64 {
    count as f64
}

/// So many in so long, a second.
#[must_use]
pub fn rate(count: u64, took: Duration) -> f64 {
    figure(count) / took.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn the_median_does_not_depend_on_the_order() {
        for (values, median) in [
            (vec![], 0.0),
            (vec![7.0], 7.0),
            (vec![9.0, 1.0], 5.0),
            (vec![9.0, 1.0, 2.0], 2.0),
        ] {
            let series: Series = values.into_iter().collect();
            assert!(close(series.median(), median), "{series:?}");
        }
    }

    #[test]
    fn a_ratio_is_taken_pair_by_pair() {
        let one: Series = [10.0, 30.0].into_iter().collect();
        let other: Series = [20.0, 30.0].into_iter().collect();
        let ratio = one.over(&other);
        assert!(close(ratio.min(), 0.5) && close(ratio.max(), 1.0));
        assert!(close(ratio.median(), 0.75));
    }

    #[test]
    fn latencies_merge_and_keep_their_quantiles() {
        let (mut one, mut other) = (Latencies::default(), Latencies::default());
        (1..=99).for_each(|ms| one.push(Duration::from_millis(ms)));
        other.push(Duration::from_secs(3600));
        one.merge(&other);
        assert_eq!(one.count(), 100);
        assert!((one.quantile_ms(0.5) - 50.0).abs() < 0.1);
        assert!((one.max_ms() - 60_000.0).abs() < 60.0);
    }
}
