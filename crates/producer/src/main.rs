//! The `producer` binary: serves tickets.

use std::process::ExitCode;

fn main() -> ExitCode {
    runtime::start(&producer::PROCESS, async |settings, shutdown| {
        let config = producer::Config::from_settings(&settings)?;
        producer::run(config, shutdown)
            .await
            .map_err(anyhow::Error::from)
    })
}
