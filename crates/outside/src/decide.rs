//! What becomes of a task: a pure function of the outcome, the try and the policy.

use std::fmt;
use std::time::Duration;

use runtime::backoff;

use crate::mutant;
use crate::provider::{Outcome, Whose};

/// When to try again, and when not to any more.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// The longest wait after the first failed try; it doubles.
    pub base: Duration,
    /// The longest wait there is.
    pub cap: Duration,
    /// After so many tries a person has to look.
    pub max_attempts: i64,
    /// The longest wait that a provider may ask for.
    pub retry_after_max: Duration,
}

/// Why a task waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParkedReason {
    /// The provider refused its content.
    Refused,
    /// The endpoint refused it as it would refuse any other.
    Endpoint,
    /// It failed too often.
    Attempts,
    /// It may have been taken, but no try in all was answered.
    Unknown,
}

impl ParkedReason {
    /// As it is stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Endpoint => "endpoint",
            Self::Attempts => "attempts",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for ParkedReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// How a try ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tried {
    /// What came of it.
    pub(crate) outcome: Outcome,
    /// Whether an earlier request may still have been taken all the same.
    pub(crate) in_doubt: bool,
}

/// What the row becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// Done.
    Delivered,
    /// Tried again after the wait, in doubt or not.
    Again {
        wait: Duration,
        in_doubt: bool,
        told: String,
    },
    /// Waits for a person.
    Parked { reason: ParkedReason, told: String },
    /// Nothing was tried: as before the claim, the try given back.
    Released { in_doubt: bool },
}

/// Decides. `attempts` counts this try; `jitter` is drawn from 0 to 1.
pub(crate) fn decide(tried: Tried, attempts: i64, policy: &Policy, jitter: f64) -> Settlement {
    let in_doubt = tried.in_doubt;
    let (told, in_doubt, at_least) = match tried.outcome {
        Outcome::Delivered => return Settlement::Delivered,
        Outcome::Refused { whose, told } => {
            let reason = match whose {
                Whose::Task => ParkedReason::Refused,
                Whose::Endpoint => ParkedReason::Endpoint,
            };
            return Settlement::Parked { reason, told };
        }
        Outcome::Failed { told, retry_after } => (told, in_doubt, retry_after.unwrap_or_default()),
        Outcome::Unknown { told } => {
            let in_doubt = !mutant::is_planted(mutant::TIMEOUT_IS_FAILURE);
            (told, in_doubt, Duration::ZERO)
        }
    };
    if attempts >= policy.max_attempts {
        let reason = match in_doubt {
            true => ParkedReason::Unknown,
            false => ParkedReason::Attempts,
        };
        return Settlement::Parked { reason, told };
    }
    let failed = u32::try_from(attempts - 1).unwrap_or(u32::MAX);
    let wait = backoff::delay(failed, policy.base, policy.cap, jitter);
    Settlement::Again {
        wait: wait.max(at_least.min(policy.retry_after_max)),
        in_doubt,
        told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy {
        base: Duration::from_secs(1),
        cap: Duration::from_secs(600),
        max_attempts: 20,
        retry_after_max: Duration::from_secs(3600),
    };

    fn failed(retry_after: Option<u64>) -> Outcome {
        Outcome::Failed {
            told: "x".to_owned(),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    fn unknown() -> Outcome {
        Outcome::Unknown {
            told: "x".to_owned(),
        }
    }

    fn decided(outcome: Outcome, in_doubt: bool, attempts: i64) -> Settlement {
        decide(Tried { outcome, in_doubt }, attempts, &POLICY, 1.0)
    }

    fn again(seconds: u64, in_doubt: bool) -> Settlement {
        Settlement::Again {
            wait: Duration::from_secs(seconds),
            in_doubt,
            told: "x".to_owned(),
        }
    }

    fn parked(reason: ParkedReason) -> Settlement {
        Settlement::Parked {
            reason,
            told: "x".to_owned(),
        }
    }

    #[test]
    fn each_outcome_has_its_settlement() {
        let refused = |whose| Outcome::Refused {
            whose,
            told: "x".to_owned(),
        };
        let cases = [
            (Outcome::Delivered, false, 1, Settlement::Delivered),
            (Outcome::Delivered, true, 99, Settlement::Delivered),
            (refused(Whose::Task), true, 1, parked(ParkedReason::Refused)),
            (
                refused(Whose::Endpoint),
                false,
                1,
                parked(ParkedReason::Endpoint),
            ),
            (failed(None), false, 1, again(1, false)),
            (failed(None), false, 2, again(2, false)),
            (failed(None), false, 11, again(600, false)),
            (failed(None), false, 20, parked(ParkedReason::Attempts)),
            (
                failed(None),
                false,
                i64::MAX,
                parked(ParkedReason::Attempts),
            ),
            (unknown(), false, 1, again(1, true)),
            (unknown(), false, 20, parked(ParkedReason::Unknown)),
        ];
        for (outcome, in_doubt, attempts, wanted) in cases {
            let shown = format!("{outcome:?} {in_doubt} {attempts}");
            assert_eq!(decided(outcome, in_doubt, attempts), wanted, "{shown}");
        }
    }

    #[test]
    fn doubt_outlives_a_later_failure() {
        assert_eq!(decided(failed(None), true, 3), again(4, true));
        assert_eq!(
            decided(failed(None), true, 20),
            parked(ParkedReason::Unknown)
        );
    }

    #[test]
    fn a_provider_may_ask_for_a_longer_wait_but_not_for_any() {
        assert_eq!(decided(failed(Some(30)), false, 1), again(30, false));
        assert_eq!(decided(failed(Some(0)), false, 3), again(4, false));
        assert_eq!(
            decided(failed(Some(u64::MAX)), false, 1),
            again(3600, false)
        );
    }
}
