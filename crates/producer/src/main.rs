//! The `producer` binary: serves tickets, or sends them, or imports them.

use std::process::ExitCode;

use anyhow::Error;
use runtime::settings::Sources;
use runtime::start::start_with;

fn main() -> ExitCode {
    let mut sources = Sources::of_this_process();
    let word = sources.arguments.first().and_then(|word| word.to_str());
    match word {
        Some("load") => {
            sources.arguments.remove(0);
            start_with(&producer::LOAD, &sources, async |settings, shutdown| {
                let config = producer::LoadConfig::from_settings(&settings);
                let totals = producer::load(config, shutdown).await?;
                println!("{}", serde_json::to_string(&totals)?);
                Ok::<_, Error>(())
            })
        }
        _ => start_with(&producer::PROCESS, &sources, async |settings, shutdown| {
            let config = producer::Config::from_settings(&settings)?;
            producer::run(config, shutdown).await.map_err(Error::from)
        }),
    }
}
