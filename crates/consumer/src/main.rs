//! The `consumer` binary: applies the effects of delivered events.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Where the system refuses, the usual stacks have to do.
    let _ = broker::deepen_stacks();
    runtime::start(&consumer::PROCESS, async |settings, shutdown| {
        let config = consumer::Config::from_settings(&settings)?;
        consumer::run(config, shutdown)
            .await
            .map_err(anyhow::Error::from)
    })
}
