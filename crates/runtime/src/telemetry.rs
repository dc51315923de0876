//! Logs to stderr, as text or JSON, through `tracing`.

use tracing_subscriber::EnvFilter;

use crate::settings::{Problems, Settings};

/// lapin logs each cut link at error, many times, and returned messages with their payload at warn;
/// what it means is logged by crate `broker`.
const QUIET: &str = "lapin=off";

/// Starts logging as `log` and `log_format` say. A second call in one program changes nothing:
/// tests run several processes in one.
pub fn log_to_stderr(settings: &Settings) {
    let filter = filter(settings.text("log")).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let started = match settings.text("log_format") {
        "json" => builder.json().flatten_event(true).try_init(),
        _ => builder
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .try_init(),
    };
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}

/// A check for a process's table: the filter must be one.
pub fn check(settings: &Settings, problems: &mut Problems) {
    if let Err(problem) = filter(settings.text("log")) {
        problems.push(format!("{}: {problem}", settings.origin("log")));
    }
}

fn filter(text: &str) -> Result<EnvFilter, String> {
    let whole = if text.contains("lapin") {
        text.to_owned()
    } else {
        format!("{text},{QUIET}")
    };
    EnvFilter::try_new(whole).map_err(|error| format!("{text:?} is not a log filter: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lapin_stays_quiet_unless_it_is_named() {
        let shown = |text| filter(text).expect(text).to_string();
        assert!(shown("debug").contains("lapin=off"));
        assert!(shown("info,lapin=trace").contains("lapin=trace"));
        assert!(filter("relay=loud").is_err());
    }
}
