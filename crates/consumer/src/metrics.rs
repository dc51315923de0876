//! What the consumer measures.

use std::time::Duration;

use chrono::Utc;
use event::EffectName;
use inbox::{Delivery, Outcome, Reason};
use metrics::{counter, gauge, histogram};
use runtime::measure::{Kind, Metric};

const DELIVERIES: &str = "consumer_deliveries_total";
const PARKED: &str = "consumer_parked_deliveries_total";
const BATCH: &str = "consumer_batch_deliveries";
const COMMIT: &str = "consumer_receipt_to_commit_seconds";
const EFFECT: &str = "consumer_commit_to_effect_seconds";
const RETRIES: &str = "consumer_retried_deliveries_total";
const SUBSCRIBED: &str = "consumer_subscribed";
const ROWS: &str = "consumer_waiting_deliveries";
const OLDEST: &str = "consumer_oldest_due_seconds";
const FLOOR: &str = "consumer_receipt_window_seconds";
const PARTITIONS: &str = "consumer_receipt_partitions_ahead";

/// The consumer's metrics, listed in `docs/METRICS.md`.
pub const METRICS: &[Metric] = &[
    Metric::new(
        DELIVERIES,
        Kind::Counter,
        &["effect", "outcome"],
        "What became of deliveries; counted after the commit.",
    ),
    Metric::new(
        PARKED,
        Kind::Counter,
        &["effect", "reason"],
        "Deliveries that need a person.",
    ),
    Metric::new(
        inbox::CONFLICTS,
        Kind::Counter,
        &["effect"],
        "Identities that came with two contents.",
    ),
    Metric::new(BATCH, Kind::Histogram, &[], "Deliveries of a batch."),
    Metric::new(
        COMMIT,
        Kind::Histogram,
        &[],
        "From receiving a batch to its commit.",
    ),
    Metric::new(
        EFFECT,
        Kind::Histogram,
        &["effect"],
        "From recording an event to its effect.",
    ),
    Metric::new(
        RETRIES,
        Kind::Counter,
        &["effect", "outcome"],
        "What became of rows that were tried again.",
    ),
    Metric::new(
        SUBSCRIBED,
        Kind::Gauge,
        &["queue"],
        "Channels over which a queue is subscribed to.",
    ),
    Metric::new(
        ROWS,
        Kind::Gauge,
        &["state"],
        "Rows: deferred, waiting for their order, suspect, parked.",
    ),
    Metric::new(
        OLDEST,
        Kind::Gauge,
        &[],
        "How long the oldest due row is due.",
    ),
    Metric::new(
        FLOOR,
        Kind::Gauge,
        &[],
        "How old the oldest delivery is that is still applied.",
    ),
    Metric::new(
        PARTITIONS,
        Kind::Gauge,
        &[],
        "Days for which receipts have partitions, today included.",
    ),
];

/// States of rows, for gauges that start at zero.
pub(crate) const STATES: [&str; 4] = ["deferred", "waiting", "suspect", "parked"];

/// Shows every series with a known label at 0 from the start.
pub(crate) fn describe<'a>(effects: impl Iterator<Item = &'a EffectName>) {
    runtime::measure::describe(METRICS);
    for state in STATES {
        rows(state, 0);
    }
    for effect in effects {
        let effect = effect.to_string();
        for outcome in [
            "applied",
            "duplicate",
            "deferred",
            "waiting",
            "suspect",
            "parked",
        ] {
            counter!(DELIVERIES, "effect" => effect.clone(), "outcome" => outcome).absolute(0);
        }
        for reason in Reason::ALL {
            let reason = reason.as_str();
            counter!(PARKED, "effect" => effect.clone(), "reason" => reason).absolute(0);
        }
        counter!(inbox::CONFLICTS, "effect" => effect).absolute(0);
    }
}

/// A batch was committed.
pub(crate) fn batch(outcomes: &[(EffectName, Outcome)], took: Duration) {
    histogram!(BATCH).record(outcomes.len() as f64);
    histogram!(COMMIT).record(took.as_secs_f64());
    // Runs of the same, as they mostly come.
    for run in outcomes.chunk_by(|one, other| one == other) {
        let Some((effect, outcome)) = run.first() else {
            continue;
        };
        let count = run.len() as u64;
        let labels = [
            ("effect", effect.to_string()),
            ("outcome", name(outcome).to_owned()),
        ];
        counter!(DELIVERIES, &labels).increment(count);
        parked(effect, outcome, count);
    }
}

/// How long after their recording events were applied, by the two machines' clocks.
pub(crate) fn applied(effect: &EffectName, deliveries: &[Delivery], outcomes: &[Outcome]) {
    let now = Utc::now();
    let effect = histogram!(EFFECT, "effect" => effect.to_string());
    for (delivery, outcome) in deliveries.iter().zip(outcomes) {
        if let (Outcome::Applied, Some(event)) = (outcome, delivery.event()) {
            let age = (now - event.occurred_at).to_std().unwrap_or_default();
            effect.record(age.as_secs_f64());
        }
    }
}

/// A row was tried.
pub(crate) fn retried(effect: &EffectName, outcome: &Outcome) {
    let labels = [
        ("effect", effect.to_string()),
        ("outcome", name(outcome).to_owned()),
    ];
    counter!(RETRIES, &labels).increment(1);
    parked(effect, outcome, 1);
}

pub(crate) fn subscribed(queue: &str, channels: usize) {
    gauge!(SUBSCRIBED, "queue" => queue.to_owned()).set(channels as f64);
}

pub(crate) fn rows(state: &'static str, count: i64) {
    gauge!(ROWS, "state" => state).set(count as f64);
}

pub(crate) fn oldest_due(seconds: f64) {
    gauge!(OLDEST).set(seconds);
}

pub(crate) fn window(seconds: f64) {
    gauge!(FLOOR).set(seconds);
}

pub(crate) fn partitions_ahead(days: i64) {
    gauge!(PARTITIONS).set(days as f64);
}

fn parked(effect: &EffectName, outcome: &Outcome, count: u64) {
    if let Outcome::Parked(reason) = outcome {
        let labels = [
            ("effect", effect.to_string()),
            ("reason", reason.to_string()),
        ];
        counter!(PARKED, &labels).increment(count);
    }
}

fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Applied => "applied",
        Outcome::Duplicate => "duplicate",
        Outcome::Deferred => "deferred",
        Outcome::Waiting => "waiting",
        Outcome::Suspect => "suspect",
        Outcome::Parked(_) => "parked",
    }
}
