//! What the loop measures: the table, and the few places where counters move.

use runtime::measure::{Kind, Metric};

use crate::decide::Settlement;
use crate::provider::Outcome;

/// Requests that ended, by endpoint and outcome.
pub(crate) const REQUESTS: &str = "consumer_outside_requests_total";
/// How long one try took.
pub(crate) const REQUEST_SECONDS: &str = "consumer_outside_request_seconds";
const DELIVERED: &str = "consumer_outside_delivered_total";
const DELIVERY_SECONDS: &str = "consumer_outside_delivery_seconds";
const PARKED: &str = "consumer_outside_parked_total";
/// Tasks whose lease somebody else had when they were to be settled.
pub(crate) const LEASE_LOST: &str = "consumer_outside_lease_lost_total";
/// Requests under way.
pub(crate) const IN_FLIGHT: &str = "consumer_outside_in_flight_requests";
/// Whether the circuit of an endpoint is open.
pub(crate) const CIRCUIT_OPEN: &str = "consumer_outside_circuit_open";
/// Tasks that are not done, by status.
pub(crate) const TASKS: &str = "consumer_outside_tasks";
/// The age of the oldest task that is due.
pub(crate) const OLDEST_DUE: &str = "consumer_outside_oldest_due_seconds";

/// All of them, for the documentation and for `/metrics` from the start.
pub const METRICS: &[Metric] = &[
    Metric::new(
        REQUESTS,
        Kind::Counter,
        &["endpoint", "outcome"],
        "Requests that ended.",
    ),
    Metric::new(
        REQUEST_SECONDS,
        Kind::Histogram,
        &["endpoint"],
        "How long a try took, the question for its key included.",
    ),
    Metric::new(DELIVERED, Kind::Counter, &[], "Tasks that were delivered."),
    Metric::new(
        DELIVERY_SECONDS,
        Kind::Histogram,
        &[],
        "From the task written down to it being delivered.",
    ),
    Metric::new(
        PARKED,
        Kind::Counter,
        &["reason"],
        "Tasks that were parked: refused, endpoint, attempts, unknown.",
    ),
    Metric::new(
        LEASE_LOST,
        Kind::Counter,
        &[],
        "Tasks that somebody else had claimed when they were to be settled.",
    ),
    Metric::new(IN_FLIGHT, Kind::Gauge, &["endpoint"], "Requests under way."),
    Metric::new(
        CIRCUIT_OPEN,
        Kind::Gauge,
        &["endpoint"],
        "1 while an endpoint is only probed, one request at a time.",
    ),
    Metric::new(
        TASKS,
        Kind::Gauge,
        &["status"],
        "Tasks that are not done: pending, sending, unknown, parked; counted up to 100,000.",
    ),
    Metric::new(
        OLDEST_DUE,
        Kind::Gauge,
        &[],
        "How long the oldest task that is due has been due.",
    ),
];

/// A task was settled, and that is committed.
pub(crate) fn settled(settlement: &Settlement, age_seconds: f64) {
    match settlement {
        Settlement::Delivered => {
            metrics::counter!(DELIVERED).increment(1);
            metrics::histogram!(DELIVERY_SECONDS).record(age_seconds);
        }
        Settlement::Parked { reason, .. } => {
            metrics::counter!(PARKED, "reason" => reason.as_str()).increment(1);
        }
        Settlement::Again { .. } | Settlement::Released { .. } => {}
    }
}

/// The value of the label `outcome`.
pub(crate) fn label(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Delivered => "delivered",
        Outcome::Refused { .. } => "refused",
        Outcome::Failed { .. } => "failed",
        Outcome::Unknown { .. } => "unknown",
    }
}
