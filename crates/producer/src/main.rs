//! The `producer` binary: serves tickets, or sends them, or imports them.

use std::ffi::OsStr;
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
        Some("import") => {
            sources.arguments.remove(0);
            if sources.arguments.first().is_some_and(|file| !is_flag(file)) {
                sources.arguments.insert(0, "--file".into());
            }
            start_with(&producer::IMPORT, &sources, async |settings, shutdown| {
                let config = producer::ImportConfig::from_settings(&settings)?;
                let imported = producer::import(config, shutdown).await?;
                println!("{}", serde_json::to_string(&imported)?);
                Ok::<_, Error>(())
            })
        }
        _ => start_with(&producer::PROCESS, &sources, async |settings, shutdown| {
            let config = producer::Config::from_settings(&settings)?;
            producer::run(config, shutdown).await.map_err(Error::from)
        }),
    }
}

fn is_flag(argument: &OsStr) -> bool {
    argument.as_encoded_bytes().starts_with(b"-")
}
