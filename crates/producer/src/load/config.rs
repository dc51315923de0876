//! The settings of `producer load`.

use std::path::PathBuf;
use std::time::Duration;

use event::TenantId;
use runtime::settings::{LOG, Problems, Process, Setting, Settings};

const MILLISECOND: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

const TRAFFIC: &[Setting] = &[
    Setting::text(
        "url",
        "http://127.0.0.1:8080",
        "Where the producer serves tickets.",
    ),
    Setting::list("tenants", "", "Who sends, as TENANT=KEY,TENANT=KEY.").checked(is_tenant_and_key),
    Setting::count(
        "rate",
        "50",
        (1, 1_000_000),
        "Intents a second, of all tenants together.",
    ),
    Setting::duration(
        "duration",
        "10s",
        (MILLISECOND, DAY),
        "How long intents are started.",
    ),
    Setting::count(
        "updates",
        "50",
        (0, 100),
        "How many of a hundred intents change a ticket.",
    ),
    Setting::duration(
        "think",
        "200ms",
        (Duration::ZERO, MINUTE),
        "The least time between two changes of one ticket.",
    ),
    Setting::count(
        "users",
        "64",
        (1, 10_000),
        "Most intents under way at once; further ones wait.",
    ),
    Setting::count(
        "payload_bytes",
        "300",
        (0, 1_000_000),
        "About how long a payload is.",
    ),
    Setting::duration(
        "patience",
        "30s",
        (MILLISECOND, DAY),
        "How long an intent is tried before its outcome is unknown.",
    ),
    Setting::duration(
        "timeout",
        "5s",
        (MILLISECOND, MINUTE),
        "How long one try may take.",
    ),
    Setting::count(
        "seed",
        "1",
        (0, u64::MAX),
        "Decides what is sent; the same seed sends the same.",
    ),
    Setting::text(
        "history",
        "",
        "A file for the outcome of each intent, one JSON object a line.",
    ),
];

/// `producer load` as a process.
pub const LOAD: Process = Process {
    name: "load",
    about: "producer load: sends tickets and changes to a producer, and notes what became of each",
    version: env!("CARGO_PKG_VERSION"),
    schema_version: schema::SCHEMA_VERSION,
    settings: &[TRAFFIC, LOG],
    checks: &[runtime::telemetry::check, somebody_sends],
};

/// What is sent, by whom, and how fast.
#[derive(Debug, Clone)]
pub struct LoadConfig {
    /// Where the producer is.
    pub url: String,
    /// Tenants and their keys.
    pub tenants: Vec<(TenantId, String)>,
    /// Intents a second.
    pub rate: u64,
    /// How long intents are started.
    pub duration: Duration,
    /// How many of a hundred intents change a ticket.
    pub updates: u64,
    /// The least time between two changes of one ticket.
    pub think: Duration,
    /// Most intents under way at once.
    pub users: usize,
    /// About how long a payload is.
    pub payload_bytes: usize,
    /// How long an intent is tried.
    pub patience: Duration,
    /// How long one try may take.
    pub timeout: Duration,
    /// Decides what is sent.
    pub seed: u64,
    /// Where outcomes are written.
    pub history: Option<PathBuf>,
}

impl LoadConfig {
    /// From the settings of [`LOAD`].
    #[must_use]
    pub fn from_settings(settings: &Settings) -> Self {
        let tenants = settings.list("tenants").iter();
        Self {
            url: settings.text("url").trim_end_matches('/').to_owned(),
            tenants: tenants
                .filter_map(|text| tenant_and_key(text).ok())
                .collect(),
            rate: settings.number("rate"),
            duration: settings.duration("duration"),
            updates: settings.number("updates"),
            think: settings.duration("think"),
            users: settings.size("users"),
            payload_bytes: settings.size("payload_bytes"),
            patience: settings.duration("patience"),
            timeout: settings.duration("timeout"),
            seed: settings.number("seed"),
            history: settings.path("history"),
        }
    }
}

fn tenant_and_key(text: &str) -> Result<(TenantId, String), String> {
    let (tenant, key) = text.split_once('=').ok_or("must be TENANT=KEY")?;
    let tenant = TenantId::parse(tenant).map_err(|error| error.to_string())?;
    match key {
        "" => Err(format!("tenant {tenant} has no key")),
        key => Ok((tenant, key.to_owned())),
    }
}

fn is_tenant_and_key(text: &str) -> Result<(), String> {
    tenant_and_key(text).map(drop)
}

fn somebody_sends(settings: &Settings, problems: &mut Problems) {
    if settings.list("tenants").is_empty() {
        problems.push(format!(
            "{}: give --tenants TENANT=KEY",
            settings.origin("tenants")
        ));
    }
}
