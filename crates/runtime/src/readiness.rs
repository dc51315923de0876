//! Readiness: whether the process makes progress, as named conditions with a reason each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// All conditions of a process. It is ready while each of them holds.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    conditions: Arc<Mutex<BTreeMap<&'static str, State>>>,
}

#[derive(Debug)]
struct State {
    failing: Option<String>,
    since: Instant,
    confirmed: Instant,
    valid_for: Option<Duration>,
}

/// One condition, held by whoever can tell.
#[derive(Debug, Clone)]
pub struct Condition {
    name: &'static str,
    conditions: Arc<Mutex<BTreeMap<&'static str, State>>>,
}

/// What `/readyz` says about one condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its name.
    pub name: &'static str,
    /// Why it does not hold, if so.
    pub failing: Option<String>,
    /// Since when it is as it is.
    pub since: Duration,
}

impl Readiness {
    /// Adds a condition. It does not hold until it is first said to.
    #[must_use]
    pub fn condition(&self, name: &'static str) -> Condition {
        self.add(name, None)
    }

    /// Adds a condition that has to be said again within `valid_for`: progress, not connection.
    #[must_use]
    pub fn progress(&self, name: &'static str, valid_for: Duration) -> Condition {
        self.add(name, Some(valid_for))
    }

    /// All conditions as they are now.
    #[must_use]
    pub fn report(&self) -> Vec<Report> {
        let conditions = lock(&self.conditions);
        let reports = conditions.iter().map(|(name, state)| Report {
            name,
            failing: state.failing(),
            since: state.since.elapsed(),
        });
        reports.collect()
    }

    /// Whether all conditions hold.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.report().iter().all(|report| report.failing.is_none())
    }

    fn add(&self, name: &'static str, valid_for: Option<Duration>) -> Condition {
        let now = Instant::now();
        let state = State {
            failing: Some("not yet known".to_owned()),
            since: now,
            confirmed: now,
            valid_for,
        };
        lock(&self.conditions).insert(name, state);
        Condition {
            name,
            conditions: Arc::clone(&self.conditions),
        }
    }
}

impl Condition {
    /// It holds.
    pub fn holds(&self) {
        self.set(None);
    }

    /// It does not hold, and why. Without secrets: the answer of `/readyz` shows it.
    pub fn fails(&self, reason: impl Into<String>) {
        self.set(Some(reason.into()));
    }

    /// It is no longer asked for, e.g. that of a pool that this process no longer serves.
    pub fn forget(&self) {
        lock(&self.conditions).remove(self.name);
    }

    fn set(&self, failing: Option<String>) {
        if let Some(state) = lock(&self.conditions).get_mut(self.name) {
            let now = Instant::now();
            if state.failing().is_some() != failing.is_some() {
                state.since = now;
            }
            state.confirmed = now;
            state.failing = failing;
        }
    }
}

impl State {
    fn failing(&self) -> Option<String> {
        let age = self.confirmed.elapsed();
        let stale = self.valid_for.filter(|valid_for| age > *valid_for);
        self.failing
            .clone()
            .or_else(|| stale.map(|_| format!("no progress for {} s", age.as_secs())))
    }
}

/// The map is whole after each change, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ready_when_every_condition_was_said_to_hold() {
        let readiness = Readiness::default();
        let database = readiness.condition("database");
        let broker = readiness.condition("broker");
        assert!(!readiness.is_ready());
        database.holds();
        assert!(!readiness.is_ready());
        broker.holds();
        assert!(readiness.is_ready());
        broker.fails("blocked: memory");
        let failing: Vec<_> = readiness
            .report()
            .into_iter()
            .filter_map(|report| report.failing)
            .collect();
        assert_eq!(failing, ["blocked: memory"]);
        broker.forget();
        assert!(readiness.is_ready());
    }

    #[test]
    fn progress_that_is_not_said_again_is_none() {
        let readiness = Readiness::default();
        let cycle = readiness.progress("cycle", Duration::ZERO);
        cycle.holds();
        let deadline = Instant::now() + Duration::from_secs(5);
        while readiness.is_ready() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(!readiness.is_ready());
    }
}
