//! The `main` that all processes share: settings, logs, signals, run, exit status.

use std::error::Error;
use std::fmt::Write as _;
use std::future::Future;
use std::io::Write as _;
use std::process::ExitCode;

use tokio_postgres::error::DbError;
use tokio_util::sync::CancellationToken;

use crate::settings::{Invocation, Problems, Process, Settings, Sources};
use crate::{measure, shutdown, telemetry};

/// The status for a command line or a setting that is not valid.
const MISUSED: u8 = 2;

/// Runs a process as the command line says: `run` is its library function.
///
/// Ends 0 after a clean stop, 1 after a failure, 2 if a setting is wrong.
pub fn start<R, F, E>(process: &Process, run: R) -> ExitCode
where
    R: FnOnce(Settings, CancellationToken) -> F,
    F: Future<Output = Result<(), E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    start_with(process, &Sources::of_this_process(), run)
}

/// The same with arguments of the caller's choice, e.g. those after a subcommand.
pub fn start_with<R, F, E>(process: &Process, sources: &Sources, run: R) -> ExitCode
where
    R: FnOnce(Settings, CancellationToken) -> F,
    F: Future<Output = Result<(), E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let settings = match process.read(sources) {
        Ok(Invocation::Run(settings)) => settings,
        Ok(Invocation::Say(text)) => return say(&text),
        Err(problems) => return refuse(process, &problems),
    };
    telemetry::log_to_stderr(&settings);
    match run_to_end(process, settings, run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = told(error.as_ref()), "{} ends", process.name);
            ExitCode::FAILURE
        }
    }
}

/// Under which name this process holds what is leased: its host and its process id.
#[must_use]
pub fn owner() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}/{}", host.trim(), std::process::id())
}

fn run_to_end<R, F, E>(
    process: &Process,
    settings: Settings,
    run: R,
) -> Result<(), Box<dyn Error + Send + Sync>>
where
    R: FnOnce(Settings, CancellationToken) -> F,
    F: Future<Output = Result<(), E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    // Both clients look for the program's provider; it may only be set once.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async {
        let shutdown = shutdown::on_signal()?;
        measure::recorder()?;
        announce(process);
        run(settings, shutdown).await.map_err(Into::into)
    });
    // A lookup of a host name may hang in a thread of its own; it must not hold up the exit.
    runtime.shutdown_background();
    outcome
}

fn announce(process: &Process) {
    let Process { name, version, .. } = *process;
    let schema = process.schema_version;
    tracing::info!(version, schema, "{name} starts");
    let labels = [
        ("process", name.to_owned()),
        ("version", version.to_owned()),
        ("schema", schema.to_string()),
    ];
    metrics::gauge!("ticketflow_build_info", &labels).set(1.0);
}

fn say(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn refuse(process: &Process, problems: &Problems) -> ExitCode {
    let name = process.name;
    let text = format!("{name} cannot start:\n{problems}\nSee {name} --help.\n");
    // Nowhere is left to say that stderr is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(MISUSED)
}

/// An error and what it came from, in one line, without the DETAIL of a database error: that
/// prints whole rows.
#[must_use]
pub fn told(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let colon = if text.is_empty() { "" } else { ": " };
        // Writing to a String cannot fail.
        let _ = match error.downcast_ref::<DbError>() {
            Some(server) => {
                let code = server.code().code();
                write!(text, "{colon}{} ({code})", server.message())
            }
            None => write!(text, "{colon}{error}"),
        };
        next = error.source();
    }
    text
}
