//! What the relay measures.

use std::time::Duration;

use event::PoolName;
use metrics::{counter, gauge, histogram};
use outbox::{Backlog, ClaimedBatch, Settled};
use runtime::measure::{Kind, Metric};

use broker::PublishOutcome;

use crate::publishing::Published;

const BATCH: &str = "relay_batch_events";
const WAVES: &str = "relay_batch_waves";
const OUTCOMES: &str = "relay_outcomes_total";
const SETTLED: &str = "relay_settled_events_total";
const LEASE_LOST: &str = "relay_lease_lost_events_total";
const STALE: &str = "relay_stale_generation_events_total";
const CONFIRM: &str = "relay_publish_to_confirm_seconds";
const COMMIT: &str = "relay_commit_to_confirm_seconds";
const CIRCUIT: &str = "relay_circuit_open";
const LINK: &str = "relay_broker_link_up";
const LANES: &str = "relay_leased_lanes";
const RENEWALS: &str = "relay_failed_renewals_total";
const STORE: &str = "relay_outbox_failures_total";
const HINT: &str = "relay_hint_up";
const OLDEST: &str = "relay_oldest_due_seconds";
const BACKLOG: &str = "relay_backlog_events";
const HELD: &str = "relay_held_aggregates";
const LAG: &str = "relay_oldest_snapshot_transactions";
const PARTITIONS: &str = "relay_partitions_ahead";
const QUEUES: &str = "relay_pool_ready";

/// The relay's metrics, listed in `docs/METRICS.md`.
pub const METRICS: &[Metric] = &[
    Metric::new(BATCH, Kind::Histogram, &[], "Events of a claimed batch."),
    Metric::new(
        WAVES,
        Kind::Histogram,
        &[],
        "Waves it took to publish a batch.",
    ),
    Metric::new(
        OUTCOMES,
        Kind::Counter,
        &["outcome"],
        "The broker's answers.",
    ),
    Metric::new(
        SETTLED,
        Kind::Counter,
        &["settlement"],
        "What became of events; counted after the commit.",
    ),
    Metric::new(
        LEASE_LOST,
        Kind::Counter,
        &[],
        "Events left alone since their lane had been lost before the settle.",
    ),
    Metric::new(
        STALE,
        Kind::Counter,
        &[],
        "Confirmed events sent again since a queue was made anew meanwhile.",
    ),
    Metric::new(
        CONFIRM,
        Kind::Histogram,
        &[],
        "From handing an event to the client to its confirm.",
    ),
    Metric::new(
        COMMIT,
        Kind::Histogram,
        &[],
        "From recording an event to its confirm.",
    ),
    Metric::new(
        CIRCUIT,
        Kind::Gauge,
        &["pool"],
        "1 while a pool's destination refuses and is probed.",
    ),
    Metric::new(
        LINK,
        Kind::Gauge,
        &[],
        "1 while the broker can be published to.",
    ),
    Metric::new(LANES, Kind::Gauge, &[], "Lanes leased by this process."),
    Metric::new(
        RENEWALS,
        Kind::Counter,
        &[],
        "Renewals of leases that failed.",
    ),
    Metric::new(STORE, Kind::Counter, &[], "Claims and settles that failed."),
    Metric::new(
        HINT,
        Kind::Gauge,
        &[],
        "1 while hints of new events are heard.",
    ),
    Metric::new(
        OLDEST,
        Kind::Gauge,
        &[],
        "How long the oldest claimable event waits; not delayed, held or paused ones.",
    ),
    Metric::new(
        BACKLOG,
        Kind::Gauge,
        &["state"],
        "Events recorded and not settled: claimable, delayed, held, parked.",
    ),
    Metric::new(HELD, Kind::Gauge, &[], "Aggregates with a waiting head."),
    Metric::new(
        LAG,
        Kind::Gauge,
        &[],
        "By how many transactions the oldest one that writes lags behind.",
    ),
    Metric::new(
        PARTITIONS,
        Kind::Gauge,
        &[],
        "Days for which there are partitions, today included.",
    ),
    Metric::new(
        QUEUES,
        Kind::Gauge,
        &["pool"],
        "1 while every queue of a pool is there and refilled.",
    ),
];

/// Shows every series with a known label at 0 from the start.
pub(crate) fn describe() {
    runtime::measure::describe(METRICS);
    for outcome in ["confirmed", "unroutable", "refused", "unknown"] {
        counter!(OUTCOMES, "outcome" => outcome).absolute(0);
    }
    for settlement in ["published", "released", "retried", "parked"] {
        counter!(SETTLED, "settlement" => settlement).absolute(0);
    }
    for state in ["claimable", "delayed", "held", "parked"] {
        gauge!(BACKLOG, "state" => state).set(0.0);
    }
}

pub(crate) fn batch(batch: &ClaimedBatch, published: &Published) {
    histogram!(BATCH).record(number(batch.events().len()));
    histogram!(WAVES).record(number(published.waves));
    let since_claim = batch.leased_at().elapsed();
    let commit = histogram!(COMMIT);
    let mut counts = [0_u64; 4];
    for (event, outcome) in batch.events().iter().zip(&published.outcomes) {
        let place = match outcome {
            None => continue,
            Some(PublishOutcome::Confirmed) => {
                commit.record((event.age + since_claim).as_secs_f64());
                0
            }
            Some(PublishOutcome::Unroutable { .. }) => 1,
            Some(PublishOutcome::Refused(_)) => 2,
            Some(PublishOutcome::Unknown(_)) => 3,
        };
        counts[place] += 1;
    }
    let names = ["confirmed", "unroutable", "refused", "unknown"];
    for (name, count) in names.into_iter().zip(counts) {
        counter!(OUTCOMES, "outcome" => name).increment(count);
    }
}

pub(crate) fn wave(messages: usize, took: Duration) {
    histogram!(CONFIRM).record_many(took.as_secs_f64(), messages);
}

pub(crate) fn settled(settled: &Settled) {
    let counts = [
        ("published", settled.published),
        ("released", settled.released),
        ("retried", settled.retried),
        ("parked", settled.parked),
    ];
    for (name, count) in counts {
        counter!(SETTLED, "settlement" => name).increment(count);
    }
    counter!(LEASE_LOST).increment(settled.lease_lost);
    counter!(STALE).increment(settled.stale);
}

pub(crate) fn circuit(pool: &PoolName, is_open: bool) {
    gauge!(CIRCUIT, "pool" => pool.to_string()).set(flag(is_open));
}

pub(crate) fn link(is_up: bool) {
    gauge!(LINK).set(flag(is_up));
}

pub(crate) fn leased_lanes(lanes: usize) {
    gauge!(LANES).set(number(lanes));
}

pub(crate) fn renewal_failed() {
    counter!(RENEWALS).increment(1);
}

pub(crate) fn store_failed() {
    counter!(STORE).increment(1);
}

pub(crate) fn hint(is_up: bool) {
    gauge!(HINT).set(flag(is_up));
}

pub(crate) fn pool_ready(pool: &PoolName, is_ready: bool) {
    gauge!(QUEUES, "pool" => pool.to_string()).set(flag(is_ready));
}

pub(crate) fn backlog(backlog: &Backlog, oldest_due: Duration) {
    let states = [
        ("claimable", backlog.claimable),
        ("delayed", backlog.delayed),
        ("held", backlog.held),
        ("parked", backlog.parked),
    ];
    for (state, count) in states {
        gauge!(BACKLOG, "state" => state).set(count as f64);
    }
    gauge!(HELD).set(backlog.held_aggregates as f64);
    gauge!(LAG).set(backlog.snapshot_lag as f64);
    gauge!(OLDEST).set(oldest_due.as_secs_f64());
}

pub(crate) fn partitions_ahead(days: i32) {
    gauge!(PARTITIONS).set(f64::from(days));
}

fn flag(is_on: bool) -> f64 {
    f64::from(u8::from(is_on))
}

fn number(count: usize) -> f64 {
    count as f64
}
