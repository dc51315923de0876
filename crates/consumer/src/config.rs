//! The consumer's settings.

use std::net::SocketAddr;
use std::time::Duration;

use broker::ConnectOptions;
use event::PoolName;
use inbox::Policy;
use runtime::database::{self, DatabaseConfig};
use runtime::settings::{self, BROKER, GRACE, LOG, Problems, Process, Setting, Settings};

use crate::effects;
use crate::prefetch::Prefetch;
use crate::window::Window;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
const YEARS: Duration = Duration::from_secs(3650 * 86_400);

const DATABASE: &[Setting] = &settings::database("ticketflow_consumer");

const WORK: &[Setting] = &[
    Setting::list(
        "pool",
        "shared",
        "The pools whose queues are consumed, once or more.",
    )
    .checked(topology::settings::is_pool),
    Setting::list(
        "effects",
        "notification,search,audit",
        "The effects that are applied.",
    )
    .checked(is_effect),
    Setting::text(
        "name",
        "",
        "Under which name a stop without a clean end is remembered; host and pools if left out.",
    ),
    Setting::count(
        "batch_size",
        "500",
        (1, 5000),
        "Most deliveries of a batch.",
    ),
    Setting::bytes(
        "batch_bytes",
        "8MiB",
        (1024, 1 << 30),
        "Most bytes of a batch; one delivery is taken whatever its size.",
    ),
    Setting::count(
        "channels",
        "2",
        (1, 64),
        "Batches at once of an effect that keeps no order, each on a channel of its own.",
    ),
    Setting::count(
        "prefetch_first",
        "32",
        (1, 65_535),
        "Unacknowledged deliveries of one channel at first.",
    ),
    Setting::count(
        "prefetch_most",
        "500",
        (1, 65_535),
        "The most of them, reached only while messages are small.",
    ),
    Setting::bytes(
        "prefetch_bytes",
        "8MiB",
        (1024, 1 << 30),
        "How many bytes they should not exceed; the broker counts messages only.",
    ),
    settings::admin("127.0.0.1:9103"),
    GRACE,
];

const TRYING: &[Setting] = &[
    Setting::duration(
        "backoff_first",
        "1s",
        (MILLISECOND, HOUR),
        "How long a deferred delivery waits; doubled each time, with full jitter.",
    ),
    Setting::duration(
        "backoff_most",
        "10min",
        (MILLISECOND, DAY),
        "The longest such wait.",
    ),
    Setting::count(
        "max_attempts",
        "20",
        (1, 1_000_000),
        "After so many refusals a delivery is parked for a person.",
    ),
    Setting::duration(
        "order_wait",
        "60s",
        (Duration::ZERO, DAY),
        "How long an event waits for an earlier one of which nothing is known.",
    ),
    Setting::duration(
        "suspect_lease",
        "10s",
        (Duration::from_millis(200), HOUR),
        "After how long without renewal the try of a suspect counts as a kill.",
    ),
    Setting::duration(
        "deadline",
        "30s",
        (Duration::from_millis(100), HOUR),
        "How long the transaction of a batch may take.",
    ),
    Setting::duration(
        "retry_poll",
        "100ms",
        (MILLISECOND, MINUTE),
        "How often deferred deliveries are looked for.",
    ),
];

const KEEPING: &[Setting] = &[
    Setting::duration(
        "dedup_window",
        "35days",
        (SECOND, YEARS),
        "How long receipts are kept: nothing older is applied.",
    ),
    Setting::duration(
        "max_delay",
        "7days",
        (Duration::ZERO, YEARS),
        "How far ahead events may be delayed.",
    ),
    Setting::duration(
        "park_after",
        "1day",
        (Duration::ZERO, YEARS),
        "How long the relay tries an event that nobody takes.",
    ),
    Setting::duration(
        "oldest_replay",
        "14days",
        (Duration::ZERO, YEARS),
        "The oldest event that may be redriven or replayed.",
    ),
    Setting::duration(
        "max_queue_time",
        "7days",
        (Duration::ZERO, YEARS),
        "How long a message may stay in a queue.",
    ),
    Setting::flag(
        "retention",
        true,
        "Whether this process removes receipts older than dedup_window.",
    ),
];

/// The consumer as a process.
pub const PROCESS: Process = Process {
    name: "consumer",
    about: "applies the effects of delivered events, each exactly once",
    version: env!("CARGO_PKG_VERSION"),
    schema_version: schema::SCHEMA_VERSION,
    settings: &[
        WORK,
        TRYING,
        KEEPING,
        outside::SETTINGS,
        DATABASE,
        BROKER,
        LOG,
    ],
    checks: &[
        database::check,
        topology::settings::broker_is_given,
        runtime::telemetry::check,
        bounds_nest,
        window_outlives_redelivery,
        outside::check,
    ],
};

/// How a consumer works.
#[derive(Debug, Clone)]
pub struct Config {
    /// The pools whose queues are consumed.
    pub pools: Vec<PoolName>,
    /// The effects that are applied, by name.
    pub effects: Vec<String>,
    /// Under which name an unclean stop is remembered.
    pub name: String,
    /// Most deliveries of a batch.
    pub batch_size: usize,
    /// Most bytes of a batch.
    pub batch_bytes: usize,
    /// Batches at once of an effect that keeps no order.
    pub channels: usize,
    /// How many deliveries may be unacknowledged.
    pub prefetch: Prefetch,
    /// How often what waits is tried.
    pub policy: Policy,
    /// How often it is looked for.
    pub retry_poll: Duration,
    /// How long receipts are kept, and why so long.
    pub window: Window,
    /// Whether this process removes old receipts.
    pub retention: bool,
    /// How tasks are sent to the outside.
    pub outside: outside::Config,
    /// Where health and metrics are served.
    pub admin: SocketAddr,
    /// How long a clean stop may take.
    pub grace: Duration,
    /// How the database is reached.
    pub database: DatabaseConfig,
    /// How the broker is reached.
    pub broker: ConnectOptions,
}

impl Config {
    /// From the settings of [`PROCESS`].
    ///
    /// # Errors
    /// [`Problems`] if there is no database or no broker.
    pub fn from_settings(settings: &Settings) -> Result<Self, Problems> {
        let database = DatabaseConfig::of(settings, PROCESS.name);
        let database = database.ok_or_else(|| Problems::one("DATABASE_URL is not set"))?;
        let pools = topology::settings::pools(settings)?;
        Ok(Self {
            outside: outside::Config::of(settings, &pools, &name_of(settings))?,
            pools,
            effects: settings.list("effects").to_vec(),
            name: name_of(settings),
            batch_size: settings.size("batch_size"),
            batch_bytes: settings.size("batch_bytes"),
            channels: settings.size("channels"),
            prefetch: Prefetch::of(settings),
            policy: policy(settings),
            retry_poll: settings.duration("retry_poll"),
            window: Window::of(settings),
            retention: settings.flag("retention"),
            admin: settings.address("admin"),
            grace: settings.duration("grace"),
            database,
            broker: topology::settings::broker(settings, PROCESS.name)?,
        })
    }
}

fn policy(settings: &Settings) -> Policy {
    Policy {
        backoff_base: settings.duration("backoff_first"),
        backoff_cap: settings.duration("backoff_most"),
        max_attempts: i64::try_from(settings.number("max_attempts")).unwrap_or(i64::MAX),
        order_wait: settings.duration("order_wait"),
        deadline: settings.duration("deadline"),
        lease: settings.duration("suspect_lease"),
        ..Policy::default()
    }
}

fn name_of(settings: &Settings) -> String {
    let given = settings.text("name");
    if !given.is_empty() {
        return given.to_owned();
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), settings.list("pool").join(","))
}

fn is_effect(value: &str) -> Result<(), String> {
    match effects::by_name(value) {
        Some(_) => Ok(()),
        None => Err(format!(
            "{value:?} is not one of {}",
            effects::NAMES.join(", ")
        )),
    }
}

fn bounds_nest(settings: &Settings, problems: &mut Problems) {
    for (least, most) in [
        ("backoff_first", "backoff_most"),
        ("prefetch_first", "prefetch_most"),
    ] {
        let above = match least {
            "backoff_first" => settings.duration(least) > settings.duration(most),
            _ => settings.number(least) > settings.number(most),
        };
        if above {
            let origin = settings.origin(least);
            problems.push(format!("{origin}: must not be above {most}"));
        }
    }
    for name in ["pool", "effects"] {
        if settings.list(name).is_empty() {
            problems.push(format!("{}: names none", settings.origin(name)));
        }
    }
}

fn window_outlives_redelivery(settings: &Settings, problems: &mut Problems) {
    let window = Window::of(settings);
    let origin = settings.origin("dedup_window");
    problems.note(
        window
            .check()
            .map_err(|problem| format!("{origin}: {problem}")),
    );
}
