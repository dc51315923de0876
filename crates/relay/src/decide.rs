//! What becomes of an event, from the broker's answer: pure, and all in one place.

use std::time::Duration;

use broker::{Closed, Doubt, Level, PublishOutcome, Refusal};
use outbox::{Settlement, mutant};

/// The reply codes that are about the message itself, alone on a fresh channel: content too large,
/// precondition failed, frame error, syntax error, unexpected frame.
const ABOUT_THE_MESSAGE: [u16; 5] = [311, 406, 501, 502, 505];

/// How long events wait that were refused for their own fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The first wait, doubled by each further refusal.
    pub backoff_first: Duration,
    /// The longest wait.
    pub backoff_most: Duration,
    /// After so long a run of refusals an event is parked.
    pub park_after: Duration,
}

/// What is known of an event besides the outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attempt {
    /// Answers before this one that were its own fault.
    pub refusals: i64,
    /// How long ago the present run of them began.
    pub refused_for: Option<Duration>,
    /// Whether every queue that its pool needs is there.
    pub is_verified: bool,
    /// The share of the wait that is taken, 0 to 1, drawn by the caller.
    pub jitter: f64,
}

/// Whose fault an outcome is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It was confirmed.
    Nobody,
    /// The connection's: nothing is known of the destination.
    Link,
    /// The destination's: it takes nothing now, so the next events would fare no better.
    Destination,
    /// The event's own.
    Event,
}

/// How an event is settled after this outcome.
#[must_use]
pub fn decide(outcome: &PublishOutcome, attempt: &Attempt, policy: &Policy) -> Settlement {
    if is_bent(outcome) {
        return Settlement::Published;
    }
    match (fault(outcome, attempt.is_verified), outcome) {
        (Fault::Nobody, _) => Settlement::Published,
        (Fault::Link, _) => Settlement::untouched(),
        (Fault::Destination, _) => Settlement::Released {
            answer: Some(outcome.to_string()),
        },
        (Fault::Event, PublishOutcome::Unroutable { .. }) => {
            retry_or_park(outcome, attempt, policy)
        }
        (
            Fault::Event,
            PublishOutcome::Confirmed | PublishOutcome::Refused(_) | PublishOutcome::Unknown(_),
        ) => Settlement::Parked {
            reason: outcome.to_string(),
        },
    }
}

/// Whose fault an outcome is. A time-out on a link that is up is the destination's: a quorum queue
/// without a majority never answers.
#[must_use]
pub fn fault(outcome: &PublishOutcome, is_verified: bool) -> Fault {
    match outcome {
        PublishOutcome::Confirmed => Fault::Nobody,
        PublishOutcome::Unroutable { .. } if is_verified => Fault::Event,
        PublishOutcome::Unroutable { .. } => Fault::Destination,
        PublishOutcome::Refused(Refusal::Nack) => Fault::Destination,
        PublishOutcome::Refused(Refusal::Closed(closed)) if is_about_the_message(closed) => {
            Fault::Event
        }
        PublishOutcome::Refused(Refusal::Closed(_)) => Fault::Destination,
        PublishOutcome::Refused(Refusal::Invalid { .. }) => Fault::Event,
        PublishOutcome::Unknown(Doubt::TimedOut)
            if mutant::is_planted(mutant::TIMEOUT_IS_FAILURE) =>
        {
            Fault::Event
        }
        PublishOutcome::Unknown(Doubt::TimedOut) => Fault::Destination,
        PublishOutcome::Unknown(
            Doubt::NotSent { .. }
            | Doubt::LinkLost { .. }
            | Doubt::Closed(_)
            | Doubt::Blocked { .. }
            | Doubt::NotConfirming,
        ) => Fault::Link,
    }
}

/// Whether a planted bug takes this for a success.
fn is_bent(outcome: &PublishOutcome) -> bool {
    match outcome {
        PublishOutcome::Confirmed | PublishOutcome::Refused(_) => false,
        PublishOutcome::Unroutable { .. } => mutant::is_planted(mutant::RETURNED_IS_OK),
        PublishOutcome::Unknown(_) => {
            mutant::is_planted(mutant::MARK_BEFORE_CONFIRM)
                || mutant::is_planted(mutant::UNKNOWN_IS_OK)
        }
    }
}

fn is_about_the_message(closed: &Closed) -> bool {
    // Alone on a connection of its own, whatever closed that is the message's doing.
    closed.level == Level::Connection || ABOUT_THE_MESSAGE.contains(&closed.code)
}

fn retry_or_park(outcome: &PublishOutcome, attempt: &Attempt, policy: &Policy) -> Settlement {
    let reason = outcome.to_string();
    if attempt
        .refused_for
        .is_some_and(|refused_for| refused_for >= policy.park_after)
    {
        return Settlement::Parked { reason };
    }
    let refusals = u32::try_from(attempt.refusals.max(0)).unwrap_or(u32::MAX);
    let (first, most) = (policy.backoff_first, policy.backoff_most);
    Settlement::Retried {
        delay: runtime::backoff::delay(refusals, first, most, attempt.jitter),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy {
        backoff_first: Duration::from_secs(1),
        backoff_most: Duration::from_secs(60),
        park_after: Duration::from_secs(86_400),
    };

    const FIRST: Attempt = Attempt {
        refusals: 0,
        refused_for: None,
        is_verified: true,
        jitter: 1.0,
    };

    fn closed(code: u16, level: Level) -> Closed {
        Closed {
            code,
            text: "because".to_owned(),
            level,
        }
    }

    fn alone(code: u16) -> PublishOutcome {
        PublishOutcome::Refused(Refusal::Closed(closed(code, Level::Channel)))
    }

    fn unroutable() -> PublishOutcome {
        PublishOutcome::Unroutable {
            code: 312,
            text: "NO_ROUTE".to_owned(),
        }
    }

    fn released(text: &str) -> Settlement {
        Settlement::Released {
            answer: Some(text.to_owned()),
        }
    }

    fn parked(reason: &str) -> Settlement {
        Settlement::Parked {
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn each_outcome_has_its_settlement() {
        let nack = PublishOutcome::Refused(Refusal::Nack);
        let invalid = PublishOutcome::Refused(Refusal::Invalid {
            reason: "too large".to_owned(),
        });
        let table = [
            (PublishOutcome::Confirmed, Settlement::Published),
            (nack, released("refused: a queue does not take it (nack)")),
            (
                PublishOutcome::Unknown(Doubt::TimedOut),
                released("unknown: no confirm in time"),
            ),
            (
                alone(403),
                released("refused: because (403, channel closed)"),
            ),
            (
                alone(404),
                released("refused: because (404, channel closed)"),
            ),
            (alone(406), parked("refused: because (406, channel closed)")),
            (alone(501), parked("refused: because (501, channel closed)")),
            (alone(502), parked("refused: because (502, channel closed)")),
            (
                PublishOutcome::Refused(Refusal::Closed(closed(541, Level::Connection))),
                parked("refused: because (541, connection closed)"),
            ),
            (invalid, parked("refused: too large")),
        ];
        for (outcome, settlement) in table {
            assert_eq!(decide(&outcome, &FIRST, &POLICY), settlement, "{outcome}");
        }
    }

    #[test]
    fn a_broken_link_costs_nothing() {
        let doubts = [
            Doubt::NotSent {
                obstacle: "down".to_owned(),
            },
            Doubt::LinkLost {
                cause: "cut".to_owned(),
            },
            Doubt::Closed(closed(320, Level::Connection)),
            Doubt::Blocked {
                reason: "memory".to_owned(),
            },
            Doubt::NotConfirming,
        ];
        for doubt in doubts {
            let outcome = PublishOutcome::Unknown(doubt);
            assert_eq!(decide(&outcome, &FIRST, &POLICY), Settlement::untouched());
            assert_eq!(fault(&outcome, true), Fault::Link, "{outcome}");
        }
    }

    #[test]
    fn what_nobody_takes_waits_longer_each_time_and_is_parked_in_the_end() {
        let wait = |refusals, refused_for, jitter| {
            let attempt = Attempt {
                refusals,
                refused_for,
                jitter,
                ..FIRST
            };
            match decide(&unroutable(), &attempt, &POLICY) {
                Settlement::Retried { delay, .. } => Some(delay.as_secs()),
                Settlement::Parked { .. } => None,
                other @ (Settlement::Published | Settlement::Released { .. }) => {
                    panic!("{other:?}")
                }
            }
        };
        assert_eq!(wait(0, None, 1.0), Some(1));
        assert_eq!(wait(3, Some(Duration::from_secs(9)), 1.0), Some(8));
        assert_eq!(wait(i64::MAX, Some(Duration::from_secs(9)), 1.0), Some(60));
        assert_eq!(
            wait(-1, None, 1.0),
            Some(1),
            "a count that was tampered with"
        );
        assert_eq!(wait(9, None, 0.5), Some(30));
        assert_eq!(wait(2, Some(POLICY.park_after), 1.0), None);
    }

    #[test]
    fn without_all_its_queues_an_unroutable_event_is_not_to_blame() {
        let attempt = Attempt {
            is_verified: false,
            refused_for: Some(POLICY.park_after),
            ..FIRST
        };
        assert_eq!(
            decide(&unroutable(), &attempt, &POLICY),
            released("unroutable: NO_ROUTE (312)")
        );
        assert_eq!(fault(&unroutable(), false), Fault::Destination);
    }
}
