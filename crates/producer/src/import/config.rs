//! The settings of `producer import`.

use std::path::PathBuf;
use std::time::Duration;

use event::TenantId;
use runtime::database::{self, DatabaseConfig};
use runtime::settings::{self, LOG, Problems, Process, Setting, Settings};

const DATABASE: &[Setting] = &settings::database("ticketflow_producer");

const FILE: &[Setting] = &[
    Setting::text(
        "file",
        "",
        "The file: a ticket a line, as JSON as for POST /v1/tickets.",
    ),
    Setting::text("tenant", "", "Whose tickets they are.").checked(is_tenant),
    Setting::text(
        "rejected",
        "",
        "Where lines that are no ticket are told, with number and reason; FILE.bad if not given.",
    ),
    Setting::count(
        "batch",
        "500",
        (1, 10_000),
        "Most tickets of one transaction.",
    ),
    Setting::bytes(
        "batch_bytes",
        "8MiB",
        (1 << 20, 256 << 20),
        "Most bytes of one transaction; a single line may have 1 MiB.",
    ),
    Setting::duration(
        "patience",
        "10m",
        (Duration::from_millis(100), Duration::from_secs(86_400)),
        "How long a database that is away is waited for.",
    ),
];

/// `producer import` as a process.
pub const IMPORT: Process = Process {
    name: "import",
    about: "producer import FILE: makes a ticket of each line; may be run again at any time",
    version: env!("CARGO_PKG_VERSION"),
    schema_version: schema::SCHEMA_VERSION,
    settings: &[FILE, DATABASE, LOG],
    checks: &[database::check, runtime::telemetry::check, file_and_tenant],
};

/// What is imported, and where to.
#[derive(Debug, Clone)]
pub struct ImportConfig {
    /// The file.
    pub file: PathBuf,
    /// Where bad lines are told.
    pub rejected: PathBuf,
    /// Whose tickets they are.
    pub tenant: TenantId,
    /// Most tickets of one transaction.
    pub batch: usize,
    /// Most bytes of one transaction.
    pub batch_bytes: usize,
    /// How long a database that is away is waited for.
    pub patience: Duration,
    /// How the database is reached.
    pub database: DatabaseConfig,
}

impl ImportConfig {
    /// From the settings of [`IMPORT`].
    ///
    /// # Errors
    /// [`Problems`] if file, tenant or database are missing.
    pub fn from_settings(settings: &Settings) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        file_and_tenant(settings, &mut problems);
        let tenant = TenantId::parse(settings.text("tenant"));
        let database = DatabaseConfig::of(settings, "producer import");
        let (Some(file), Ok(tenant), Some(database)) = (settings.path("file"), tenant, database)
        else {
            return Err(problems);
        };
        let beside = || PathBuf::from(format!("{}.bad", file.display()));
        Ok(Self {
            rejected: settings.path("rejected").unwrap_or_else(beside),
            file,
            tenant,
            batch: settings.size("batch"),
            batch_bytes: settings.size("batch_bytes"),
            patience: settings.duration("patience"),
            database,
        })
    }
}

fn is_tenant(text: &str) -> Result<(), String> {
    let parsed = TenantId::parse(text);
    parsed.map(drop).map_err(|error| error.to_string())
}

fn file_and_tenant(settings: &Settings, problems: &mut Problems) {
    for (name, example) in [("file", "tickets.jsonl"), ("tenant", "acme")] {
        if settings.text(name).is_empty() {
            problems.push(format!("{name} is missing: --{name} {example}"));
        }
    }
}
