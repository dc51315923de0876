//! What the producer measures.

use runtime::measure::{Kind, Metric};

pub(crate) const REQUESTS: &str = "producer_requests_total";
pub(crate) const SECONDS: &str = "producer_request_duration_seconds";
pub(crate) const REFUSED: &str = "producer_refused_requests_total";
pub(crate) const WRITTEN: &str = "producer_written_tickets_total";
pub(crate) const REPLAYED: &str = "producer_replayed_answers_total";
pub(crate) const LOST_ANSWERS: &str = "producer_lost_commit_answers_total";
pub(crate) const IN_FLIGHT: &str = "producer_in_flight_requests";
pub(crate) const CONNECTIONS: &str = "producer_client_connections";
pub(crate) const POOL_IN_USE: &str = "producer_database_connections_in_use";
pub(crate) const POOL_SIZE: &str = "producer_database_connections_max";
pub(crate) const HINTS: &str = "producer_hints_total";
pub(crate) const FORGOTTEN: &str = "producer_forgotten_idempotency_keys_total";

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric::new(name, Kind::Counter, labels, help)
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric::new(name, Kind::Gauge, &[], help)
}

/// The producer's metrics, listed in `docs/METRICS.md`.
pub const METRICS: &[Metric] = &[
    counter(REQUESTS, &["route", "method", "status"], "Answers given."),
    Metric::new(
        SECONDS,
        Kind::Histogram,
        &["route"],
        "From a request's headers to its answer.",
    ),
    counter(
        REFUSED,
        &["reason"],
        "Answers that were a problem, by its type.",
    ),
    counter(
        WRITTEN,
        &["change"],
        "Tickets created and updated; counted after the commit.",
    ),
    counter(
        REPLAYED,
        &[],
        "Answers given again under an idempotency key.",
    ),
    counter(
        LOST_ANSWERS,
        &[],
        "Commits whose answer was lost and that were looked up again.",
    ),
    gauge(
        IN_FLIGHT,
        "Requests that are worked on or wait for the database.",
    ),
    gauge(CONNECTIONS, "Open connections of clients."),
    gauge(POOL_IN_USE, "Database connections that are lent out."),
    gauge(POOL_SIZE, "The most there may be."),
    counter(HINTS, &[], "Hints sent to relays."),
    counter(FORGOTTEN, &[], "Idempotency keys whose time was over."),
];
