//! Metrics: a table per process, described once, kept for the admin port's `/metrics`.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::task::AbortOnDropHandle;

/// From a round trip on one machine to the slowest thing that is still a success.
const SECONDS: [f64; 18] = [
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
    300.0, 3600.0,
];
/// Sizes of batches and the like.
const NUMBERS: [f64; 12] = [
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0,
];
/// Histograms grow without bound unless they are drained this often.
const UPKEEP: Duration = Duration::from_secs(5);

/// What a metric does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values in buckets: seconds if the name ends so, else plain numbers.
    Histogram,
}

/// One metric: a line of `docs/METRICS.md`.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// `<process>_<noun>_<unit>_total`.
    pub name: &'static str,
    /// What it does.
    pub kind: Kind,
    /// Its labels, each with few values.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

impl Metric {
    /// A metric of this name, doing this, with these labels.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kind: Kind,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            labels,
            help,
        }
    }
}

/// What every process measures of itself.
pub const PROCESS: &[Metric] = &[
    Metric {
        name: "ticketflow_build_info",
        kind: Kind::Gauge,
        labels: &["process", "version", "schema"],
        help: "Always 1; its labels say what is running.",
    },
    Metric {
        name: "ticketflow_resident_memory_bytes",
        kind: Kind::Gauge,
        labels: &[],
        help: "Memory of the process that is in RAM.",
    },
    Metric {
        name: "ticketflow_task_restarts_total",
        kind: Kind::Counter,
        labels: &["task"],
        help: "Tasks that panicked or failed and were started again.",
    },
];

/// Starts recording, once per program, and gives what renders the text for `/metrics`.
///
/// # Errors
/// [`BuildError`] if another recorder was installed before.
pub fn recorder() -> Result<PrometheusHandle, BuildError> {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    static INSTALLING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one_at_a_time = INSTALLING.lock();
    if let Some(handle) = HANDLE.get() {
        return Ok(handle.clone());
    }
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets(&NUMBERS)?
        .install_recorder()?;
    Ok(HANDLE.get_or_init(|| handle).clone())
}

/// Describes the metrics and shows those without labels at 0 from the start: an alert on a series
/// that is not there never fires.
pub fn describe(metrics: &[Metric]) {
    for metric in metrics {
        let Metric { name, help, .. } = *metric;
        let bare = metric.labels.is_empty();
        match metric.kind {
            Kind::Counter => {
                metrics::describe_counter!(name, help);
                if bare {
                    metrics::counter!(name).absolute(0);
                }
            }
            Kind::Gauge => {
                metrics::describe_gauge!(name, help);
                if bare {
                    metrics::gauge!(name).set(0.0);
                }
            }
            Kind::Histogram => metrics::describe_histogram!(name, help),
        }
    }
}

/// Keeps histograms small and the memory gauge fresh for as long as the answer lives.
pub fn upkeep(handle: PrometheusHandle) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut ticks = tokio::time::interval(UPKEEP);
        loop {
            ticks.tick().await;
            handle.run_upkeep();
            if let Some(bytes) = resident_bytes() {
                metrics::gauge!("ticketflow_resident_memory_bytes").set(bytes);
            }
        }
    }))
}

/// The table for the documentation, as Markdown.
#[must_use]
pub fn table(metrics: &[Metric]) -> String {
    let mut text = String::from("| metric | kind | labels | what it says |\n|---|---|---|---|\n");
    for metric in metrics {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let labels = metric.labels.join(", ");
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {kind} | {labels} | {} |",
            metric.name, metric.help
        );
    }
    text
}

/// Where the system tells it (Linux), the memory in RAM.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: u32 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(f64::from(kilobytes) * 1024.0)
}
