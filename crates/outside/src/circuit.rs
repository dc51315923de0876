//! The circuit of one endpoint: while it is open only one request at a time goes out, to see.

use std::time::Duration;

use runtime::backoff;
use tokio::time::Instant;

use crate::mutant;
use crate::provider::{Outcome, Whose};

/// The first wait before an endpoint that stopped answering is tried again; it doubles.
const BASE: Duration = Duration::from_secs(1);

/// When the circuit opens and how long it stays open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// So many failures in a row open it.
    pub(crate) failures: u32,
    /// The longest wait between two probes.
    pub(crate) wait_max: Duration,
    /// The longest wait that the endpoint itself may ask for.
    pub(crate) retry_after_max: Duration,
}

/// Which state of the circuit a request was sent in: what was sent before it opened does not
/// count against it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent(u64);

#[derive(Debug, Clone, Copy)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant, probing: bool },
}

/// The circuit.
#[derive(Debug)]
pub(crate) struct Circuit {
    limits: Limits,
    state: State,
    opened: u64,
    /// Probes that failed since the last success.
    failed_probes: u32,
}

impl Circuit {
    /// Open and due: the first request is a probe, so that a process which is started again and
    /// again beside a dead endpoint does not send it a volley each time.
    pub(crate) fn new(limits: Limits, now: Instant) -> Self {
        let state = State::Open {
            until: now,
            probing: false,
        };
        Self {
            limits,
            state,
            opened: 0,
            failed_probes: 0,
        }
    }

    /// How many requests more may go out now, of the `room` that there is.
    pub(crate) fn permits(&self, room: usize, now: Instant) -> usize {
        match self.state {
            State::Closed { .. } => room,
            State::Open { until, probing } if !probing && now >= until => room.min(1),
            State::Open { .. } => 0,
        }
    }

    /// A request goes out.
    pub(crate) fn sent(&mut self) -> Sent {
        if let State::Open { probing, .. } = &mut self.state {
            *probing = true;
        }
        Sent(self.opened)
    }

    /// A request ended. `jitter` is drawn from 0 to 1.
    pub(crate) fn ended(&mut self, sent: Sent, outcome: &Outcome, now: Instant, jitter: f64) {
        if is_alive(outcome) || mutant::is_planted(mutant::NO_CIRCUIT) {
            self.state = State::Closed { failures: 0 };
            self.failed_probes = 0;
            return;
        }
        if sent.0 != self.opened {
            return;
        }
        let asked = retry_after(outcome).min(self.limits.retry_after_max);
        match &mut self.state {
            State::Open { .. } => self.open(asked, now, jitter),
            State::Closed { failures } => {
                *failures += 1;
                if *failures >= self.limits.failures || !asked.is_zero() {
                    self.open(asked, now, jitter);
                }
            }
        }
    }

    /// Whether it is open for a reason, not just not yet known.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. }) && self.opened > 0
    }

    fn open(&mut self, asked: Duration, now: Instant, jitter: f64) {
        // At least half of it, so that jitter never makes the probes a hot loop.
        let share = 0.5_f64.mul_add(jitter, 0.5);
        let wait = backoff::delay(self.failed_probes, BASE, self.limits.wait_max, share);
        self.failed_probes = self.failed_probes.saturating_add(1);
        self.opened += 1;
        self.state = State::Open {
            until: now + wait.max(asked),
            probing: false,
        };
    }
}

/// Whether the endpoint works. A task that is refused for its own sake shows that it does.
fn is_alive(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Delivered => true,
        Outcome::Refused { whose, .. } => match whose {
            Whose::Task => true,
            Whose::Endpoint => false,
        },
        Outcome::Failed { .. } | Outcome::Unknown { .. } => false,
    }
}

fn retry_after(outcome: &Outcome) -> Duration {
    match outcome {
        Outcome::Failed { retry_after, .. } => retry_after.unwrap_or_default(),
        Outcome::Delivered | Outcome::Refused { .. } | Outcome::Unknown { .. } => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        failures: 3,
        wait_max: Duration::from_secs(60),
        retry_after_max: Duration::from_secs(600),
    };

    fn unknown() -> Outcome {
        Outcome::Unknown {
            told: String::new(),
        }
    }

    fn busy(seconds: u64) -> Outcome {
        Outcome::Failed {
            told: String::new(),
            retry_after: Some(Duration::from_secs(seconds)),
        }
    }

    fn closed(now: Instant) -> Circuit {
        let mut circuit = Circuit::new(LIMITS, now);
        let probe = circuit.sent();
        circuit.ended(probe, &Outcome::Delivered, now, 1.0);
        circuit
    }

    fn fail(circuit: &mut Circuit, outcome: &Outcome, now: Instant) {
        let sent = circuit.sent();
        circuit.ended(sent, outcome, now, 1.0);
    }

    #[test]
    fn the_first_request_of_all_goes_alone() {
        let now = Instant::now();
        let mut circuit = Circuit::new(LIMITS, now);
        assert_eq!(circuit.permits(16, now), 1);
        let probe = circuit.sent();
        assert_eq!(circuit.permits(16, now), 0);
        assert!(!circuit.is_open(), "nothing is wrong yet");
        circuit.ended(probe, &Outcome::Delivered, now, 1.0);
        assert_eq!(circuit.permits(16, now), 16);
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_probe_at_a_time_goes_out() {
        let mut now = Instant::now();
        let mut circuit = closed(now);
        for _ in 0..2 {
            fail(&mut circuit, &unknown(), now);
        }
        assert_eq!(circuit.permits(16, now), 16);
        fail(&mut circuit, &unknown(), now);
        assert!(circuit.is_open());
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            let wait = Duration::from_secs(wait);
            assert_eq!(
                circuit.permits(16, now + wait - Duration::from_millis(1)),
                0
            );
            now += wait;
            assert_eq!(circuit.permits(16, now), 1);
            fail(&mut circuit, &unknown(), now);
        }
        now += Duration::from_secs(60);
        let probe = circuit.sent();
        circuit.ended(probe, &Outcome::Delivered, now, 1.0);
        assert_eq!(circuit.permits(16, now), 16);
    }

    #[test]
    fn what_was_sent_before_it_opened_does_not_count_again() {
        let now = Instant::now();
        let mut circuit = closed(now);
        let volley: Vec<Sent> = (0..16).map(|_| circuit.sent()).collect();
        for sent in volley {
            circuit.ended(sent, &unknown(), now, 1.0);
        }
        assert_eq!(
            circuit.permits(16, now + Duration::from_secs(1)),
            1,
            "the first wait"
        );
    }

    #[test]
    fn a_refusal_for_the_tasks_sake_shows_life_one_for_the_endpoints_does_not() {
        let now = Instant::now();
        let mut circuit = closed(now);
        let refused = |whose| Outcome::Refused {
            whose,
            told: String::new(),
        };
        for _ in 0..10 {
            fail(&mut circuit, &refused(Whose::Task), now);
        }
        assert!(!circuit.is_open());
        for _ in 0..3 {
            fail(&mut circuit, &refused(Whose::Endpoint), now);
        }
        assert!(circuit.is_open());
    }

    #[test]
    fn an_endpoint_that_asks_for_time_gets_it_within_bounds() {
        let now = Instant::now();
        for (asked, got) in [(30, 30), (86_400, 600)] {
            let mut circuit = closed(now);
            fail(&mut circuit, &busy(asked), now);
            let until = now + Duration::from_secs(got);
            assert_eq!(circuit.permits(16, until - Duration::from_millis(1)), 0);
            assert_eq!(circuit.permits(16, until), 1);
        }
    }
}
