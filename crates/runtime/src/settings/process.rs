//! A process as its settings describe it, and the reading of them.

use std::path::PathBuf;

use super::layers::{self, Layer, Said};
use super::values::Given;
use super::{Problems, Setting, Settings, Sources, help, value};

/// A process: its name, what it is for, and the table of its settings.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    /// `relay`: the name of the binary and, in capitals, part of its variables.
    pub name: &'static str,
    /// One sentence for `--help`.
    pub about: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The version of the tables that it works with.
    pub schema_version: i32,
    /// Its settings, in groups as they are listed.
    pub settings: &'static [&'static [Setting]],
    /// What settings must be to each other; each adds what is wrong.
    pub checks: &'static [fn(&Settings, &mut Problems)],
}

/// What a command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// To run with these settings.
    Run(Settings),
    /// To print this and end well.
    Say(String),
}

const CONFIG: Setting = Setting::text("config", "", "A TOML file of settings by name.");

impl Process {
    /// Reads flags over environment over file over defaults.
    ///
    /// # Errors
    /// [`Problems`] with everything that is wrong in any of them.
    pub fn read(&self, sources: &Sources) -> Result<Invocation, Problems> {
        let table = self.table();
        let prefix = self.prefix();
        let mut problems = Problems::default();
        let flags = layers::flags(&table, sources, &mut problems);
        if flags.help {
            return Ok(Invocation::Say(help::text(self, &table)));
        }
        if flags.version {
            return Ok(Invocation::Say(self.version_line()));
        }
        let mut said = layers::environment(&table, &prefix, sources, &mut problems);
        said.extend(flags.layer);
        if let Some(path) = config_path(&said) {
            let mut below = layers::file(&table, &path, &mut problems);
            below.append(&mut said);
            said = below;
        }
        let settings = checked(&table, &said, &mut problems);
        if problems.is_empty() {
            for check in self.checks {
                check(&settings, &mut problems);
            }
        }
        if problems.is_empty() {
            Ok(Invocation::Run(settings))
        } else {
            Err(problems)
        }
    }

    /// `relay 0.1.0 (schema 3)`.
    #[must_use]
    pub fn version_line(&self) -> String {
        let Self { name, version, .. } = self;
        format!("{name} {version} (schema {})\n", self.schema_version)
    }

    /// `TICKETFLOW_RELAY_`.
    pub(super) fn prefix(&self) -> String {
        format!("TICKETFLOW_{}_", self.name.to_uppercase())
    }

    fn table(&self) -> Vec<Setting> {
        let groups = self.settings.iter().copied().flatten().copied();
        std::iter::once(CONFIG).chain(groups).collect()
    }
}

fn config_path(said: &Layer) -> Option<PathBuf> {
    let text = said.get(CONFIG.name)?.texts.last()?;
    (!text.is_empty()).then(|| PathBuf::from(text))
}

fn checked(table: &[Setting], said: &Layer, problems: &mut Problems) -> Settings {
    let mut settings = Settings {
        values: std::collections::BTreeMap::new(),
    };
    for setting in table {
        let default = || Said {
            texts: vec![setting.default.to_owned()],
            origin: format!("default of {}", setting.name),
            rank: 0,
        };
        let said = said.get(setting.name).cloned().unwrap_or_else(default);
        let Said {
            texts,
            origin,
            rank,
        } = said;
        match value::parse(setting, &texts) {
            Ok(value) => {
                let given = Given {
                    value,
                    origin,
                    rank,
                };
                settings.values.insert(setting.name, given);
            }
            Err(problem) => problems.push(format!("{origin}: {problem}")),
        }
    }
    settings
}
