//! The producer's settings.

use std::net::SocketAddr;
use std::time::Duration;

use runtime::database::{self, DatabaseConfig};
use runtime::settings::{self, GRACE, LOG, Problems, Process, Setting, Settings};

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const TEN_MINUTES: Duration = Duration::from_secs(600);
const NINETY_DAYS: Duration = Duration::from_secs(90 * 86_400);

const DATABASE: &[Setting] = &settings::database("ticketflow_producer");

const HTTP: &[Setting] = &[
    Setting::address(
        "listen",
        "127.0.0.1:8080",
        "Where tickets are served over HTTP.",
    ),
    settings::admin("127.0.0.1:9101"),
    GRACE,
    Setting::flag(
        "access_log",
        true,
        "Whether each request is logged: never its body or its key.",
    ),
];

const LIMITS: &[Setting] = &[
    Setting::count(
        "rate_per_second",
        "200",
        (1, 1_000_000),
        "Requests a second of a tenant that has no rate of its own.",
    ),
    Setting::count(
        "rate_burst",
        "400",
        (1, 1_000_000),
        "How many of them may come at once.",
    ),
    Setting::count(
        "max_connections",
        "1000",
        (1, 100_000),
        "Open connections of clients; further ones wait to be accepted.",
    ),
    Setting::count(
        "max_in_flight",
        "256",
        (1, 100_000),
        "Requests that are worked on or wait for the database; further ones get 503.",
    ),
    Setting::count(
        "max_in_flight_per_tenant",
        "64",
        (1, 100_000),
        "The same of one tenant, so that it leaves room for others.",
    ),
    Setting::duration(
        "request_timeout",
        "10s",
        (Duration::from_millis(100), TEN_MINUTES),
        "How long a request may take once its body is here: at most a quarter of it for a \
         connection, half of it for a statement, two fifths of it for a lock.",
    ),
    Setting::duration(
        "header_timeout",
        "30s",
        (Duration::from_millis(100), TEN_MINUTES),
        "How long a connection may stay idle or its next request's headers may take.",
    ),
    Setting::duration(
        "body_timeout",
        "10s",
        (Duration::from_millis(100), TEN_MINUTES),
        "How long a request's body may take.",
    ),
    Setting::duration(
        "write_timeout",
        "10s",
        (Duration::from_millis(100), TEN_MINUTES),
        "How long a client may take nothing of an answer.",
    ),
    Setting::duration(
        "key_cache",
        "5s",
        (MILLISECOND, MINUTE),
        "How long it is remembered whose key it is, for the tenant's rate; writes and reads look again.",
    ),
    Setting::duration(
        "idempotency_retention",
        "1day",
        (MINUTE, NINETY_DAYS),
        "How long answers are kept under their idempotency keys.",
    ),
];

const HINT: &[Setting] = &[
    Setting::flag(
        "hint",
        true,
        "Whether relays are woken after a commit; without it they poll.",
    ),
    Setting::duration(
        "hint_interval",
        "2ms",
        (MILLISECOND, SECOND),
        "The least time between two hints; those in between become one.",
    ),
];

/// The producer as a process.
pub const PROCESS: Process = Process {
    name: "producer",
    about: "tickets over HTTP; also: producer load, producer import",
    version: env!("CARGO_PKG_VERSION"),
    schema_version: schema::SCHEMA_VERSION,
    settings: &[HTTP, LIMITS, HINT, DATABASE, LOG],
    checks: &[database::check, runtime::telemetry::check],
};

/// How the producer serves.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where tickets are served.
    pub listen: SocketAddr,
    /// Where health and metrics are served.
    pub admin: SocketAddr,
    /// How long a clean stop may take.
    pub grace: Duration,
    /// Whether each request is logged.
    pub access_log: bool,
    /// What one client, one tenant and all of them may take.
    pub limits: Limits,
    /// How long answers are kept under their idempotency keys.
    pub idempotency_retention: Duration,
    /// The least time between two hints to relays; none sends none.
    pub hint_interval: Option<Duration>,
    /// How the database is reached.
    pub database: DatabaseConfig,
}

/// What one client, one tenant and all of them may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Requests a second of a tenant without a rate of its own.
    pub rate_per_second: u32,
    /// How many may come at once.
    pub rate_burst: u32,
    /// Open connections.
    pub max_connections: usize,
    /// Requests that are worked on or wait for the database.
    pub max_in_flight: usize,
    /// The same of one tenant.
    pub max_in_flight_per_tenant: usize,
    /// How long a request may take once its body is here.
    pub request_timeout: Duration,
    /// How long headers may take.
    pub header_timeout: Duration,
    /// How long a body may take.
    pub body_timeout: Duration,
    /// How long a client may take nothing of an answer.
    pub write_timeout: Duration,
    /// How long it is remembered whose key it is.
    pub key_cache: Duration,
}

impl Config {
    /// From the settings of [`PROCESS`].
    ///
    /// # Errors
    /// [`Problems`] if there is no database.
    pub fn from_settings(settings: &Settings) -> Result<Self, Problems> {
        let Some(database) = DatabaseConfig::of(settings, PROCESS.name) else {
            let mut problems = Problems::default();
            problems.push("DATABASE_URL is not set");
            return Err(problems);
        };
        let limits = Limits::of(settings);
        let hint = settings
            .flag("hint")
            .then(|| settings.duration("hint_interval"));
        Ok(Self {
            listen: settings.address("listen"),
            admin: settings.address("admin"),
            grace: settings.duration("grace"),
            access_log: settings.flag("access_log"),
            idempotency_retention: settings.duration("idempotency_retention"),
            hint_interval: hint,
            database: nested(database, limits.request_timeout),
            limits,
        })
    }
}

impl Limits {
    fn of(settings: &Settings) -> Self {
        let rate = |name| u32::try_from(settings.number(name)).unwrap_or(u32::MAX);
        Self {
            rate_per_second: rate("rate_per_second"),
            rate_burst: rate("rate_burst"),
            max_connections: settings.size("max_connections"),
            max_in_flight: settings.size("max_in_flight"),
            max_in_flight_per_tenant: settings.size("max_in_flight_per_tenant"),
            request_timeout: settings.duration("request_timeout"),
            header_timeout: settings.duration("header_timeout"),
            body_timeout: settings.duration("body_timeout"),
            write_timeout: settings.duration("write_timeout"),
            key_cache: settings.duration("key_cache"),
        }
    }
}

/// The parts of a request's time add up to less than all of it, so that each ends with its own
/// word: no connection in time, a key still in flight, a statement that the server ended.
fn nested(database: DatabaseConfig, request_timeout: Duration) -> DatabaseConfig {
    DatabaseConfig {
        wait_timeout: database.wait_timeout.min(request_timeout / 4),
        statement_timeout: database.statement_timeout.min(request_timeout / 2),
        lock_timeout: database.lock_timeout.min(request_timeout * 2 / 5),
        ..database
    }
}
