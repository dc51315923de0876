//! The `relay` binary: publishes recorded events.

use std::process::ExitCode;

fn main() -> ExitCode {
    runtime::start(&relay::PROCESS, async |settings, shutdown| {
        let config = relay::Config::from_settings(&settings)?;
        relay::run(config, shutdown)
            .await
            .map_err(anyhow::Error::from)
    })
}
