//! The relay's settings.

use std::net::SocketAddr;
use std::time::Duration;

use broker::ConnectOptions;
use event::PoolName;
use runtime::database::{self, DatabaseConfig};
use runtime::settings::{self, BROKER, GRACE, LOG, Problems, Process, Setting, Settings};

use crate::decide::Policy;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const TEN_MINUTES: Duration = Duration::from_secs(600);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
const MONTH: Duration = Duration::from_secs(31 * 86_400);

/// For a claim or a settle, all of it.
pub(crate) const STORE_DEADLINE: Duration = Duration::from_secs(5);

const DATABASE: &[Setting] = &settings::database("ticketflow_relay");

const WORK: &[Setting] = &[
    Setting::list(
        "pool",
        "",
        "The pools whose events are published, once or more; none means all.",
    )
    .checked(topology::settings::is_pool),
    Setting::count(
        "workers",
        "4",
        (1, 64),
        "Batches that are published at once.",
    ),
    Setting::count("batch_size", "512", (1, 10_000), "Most events of a batch."),
    Setting::bytes(
        "batch_bytes",
        "8MiB",
        (1024, 1 << 30),
        "Most bytes of payload of a batch; one event is taken whatever its size.",
    ),
    Setting::duration(
        "lease",
        "3s",
        (Duration::from_millis(300), TEN_MINUTES),
        "How long lanes stay with a process that has gone silent; renewed three times as often.",
    ),
    Setting::duration(
        "confirm_timeout",
        "15s",
        (Duration::from_millis(100), TEN_MINUTES),
        "How long to wait for the broker's answer to a wave.",
    ),
    settings::admin("127.0.0.1:9102"),
    GRACE,
];

const REFUSALS: &[Setting] = &[
    Setting::duration(
        "backoff_first",
        "1s",
        (Duration::from_millis(10), HOUR),
        "How long an event waits that nobody takes; doubled each time, with full jitter.",
    ),
    Setting::duration(
        "backoff_most",
        "60s",
        (Duration::from_millis(10), DAY),
        "The longest such wait.",
    ),
    Setting::duration(
        "park_after",
        "1day",
        (Duration::ZERO, MONTH),
        "After how long a run of refusals an event is parked for a person.",
    ),
];

const LOOKING: &[Setting] = &[
    Setting::duration(
        "poll_least",
        "1ms",
        (MILLISECOND, MINUTE),
        "The wait before looking for events again after work; doubled while there is none.",
    ),
    Setting::duration(
        "poll_most",
        "50ms",
        (MILLISECOND, MINUTE),
        "The longest such wait.",
    ),
    Setting::flag(
        "hint",
        true,
        "Whether hints of producers are listened for; without them it polls.",
    ),
    Setting::duration(
        "most_due",
        "1min",
        (SECOND, DAY),
        "How long an event may be due before the process is no longer ready.",
    ),
    Setting::duration(
        "outbox_retention",
        "14days",
        (DAY, Duration::from_secs(3650 * 86_400)),
        "How long published events are kept, in whole days.",
    ),
];

/// The relay as a process.
pub const PROCESS: Process = Process {
    name: "relay",
    about: "publishes recorded events: claim, publish, settle",
    version: env!("CARGO_PKG_VERSION"),
    schema_version: schema::SCHEMA_VERSION,
    settings: &[WORK, REFUSALS, LOOKING, DATABASE, BROKER, LOG],
    checks: &[
        database::check,
        topology::settings::broker_is_given,
        runtime::telemetry::check,
        bounds_nest,
    ],
};

/// How a relay works.
#[derive(Debug, Clone)]
pub struct Config {
    /// The pools whose events are published; all when left out.
    pub pools: Option<Vec<PoolName>>,
    /// Batches that are published at once.
    pub workers: usize,
    /// Most events of a batch.
    pub batch_size: usize,
    /// Most bytes of payload of a batch.
    pub batch_bytes: usize,
    /// How long a lease holds.
    pub lease: Duration,
    /// How long to wait for the answers of a wave.
    pub confirm_timeout: Duration,
    /// How long refused events wait.
    pub policy: Policy,
    /// The shortest wait between two looks.
    pub poll_least: Duration,
    /// The longest.
    pub poll_most: Duration,
    /// Whether hints are listened for.
    pub hint: bool,
    /// How long an event may be due before the process is no longer ready.
    pub most_due: Duration,
    /// For how many days published events are kept.
    pub retention_days: i32,
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
        let days = settings
            .duration("outbox_retention")
            .as_secs()
            .div_ceil(DAY.as_secs());
        Ok(Self {
            pools: (!pools.is_empty()).then_some(pools),
            workers: settings.size("workers"),
            batch_size: settings.size("batch_size"),
            batch_bytes: settings.size("batch_bytes"),
            lease: settings.duration("lease"),
            confirm_timeout: settings.duration("confirm_timeout"),
            policy: Policy {
                backoff_first: settings.duration("backoff_first"),
                backoff_most: settings.duration("backoff_most"),
                park_after: settings.duration("park_after"),
            },
            poll_least: settings.duration("poll_least"),
            poll_most: settings.duration("poll_most"),
            hint: settings.flag("hint"),
            most_due: settings.duration("most_due"),
            retention_days: i32::try_from(days).unwrap_or(i32::MAX),
            admin: settings.address("admin"),
            grace: settings.duration("grace"),
            database,
            broker: topology::settings::broker(settings, PROCESS.name)?,
        })
    }
}

/// A stop waits for the running wave and its settle; a shorter wait grows to a longer one.
fn bounds_nest(settings: &Settings, problems: &mut Problems) {
    let stop = settings.duration("confirm_timeout") + STORE_DEADLINE;
    if stop > settings.duration("grace") {
        problems.push(format!(
            "{}: must be at least confirm_timeout and {STORE_DEADLINE:?} together, {stop:?}",
            settings.origin("grace"),
        ));
    }
    for (least, most) in [
        ("poll_least", "poll_most"),
        ("backoff_first", "backoff_most"),
    ] {
        if settings.duration(least) > settings.duration(most) {
            problems.push(format!(
                "{}: must not be above {most}",
                settings.origin(least)
            ));
        }
    }
}
