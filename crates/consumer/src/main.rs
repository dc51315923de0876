//! The `consumer` binary: applies the effects of delivered events.

use std::process::ExitCode;

fn main() -> ExitCode {
    runtime::start(&consumer::PROCESS, async |settings, shutdown| {
        let config = consumer::Config::from_settings(&settings)?;
        consumer::run(config, shutdown)
            .await
            .map_err(anyhow::Error::from)
    })
}
