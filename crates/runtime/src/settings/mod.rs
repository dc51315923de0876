//! Settings: declared once as a table, read from flags, environment and file, in that order.
//!
//! The table is all there is to know about a setting: `--help` is printed from it, values are
//! checked against it, and what is not in it is refused, wherever it was given.

mod common;
mod help;
mod layers;
mod problems;
mod process;
mod sources;
mod url;
mod value;
mod values;

use std::time::Duration;

pub use common::{BROKER, GRACE, LOG, admin, database};
pub use problems::Problems;
pub use process::{Invocation, Process};
pub use sources::Sources;
pub use url::SecretUrl;
pub use values::Settings;

/// One setting of a process.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name in the file; the flag is the same with dashes, the variable in capitals.
    pub name: &'static str,
    /// What its values look like.
    pub kind: Kind,
    /// The value when none is given, as it would be written; empty is no value.
    pub default: &'static str,
    /// What it decides, for `--help`.
    pub help: &'static str,
    /// A variable that is read too, for names that are common to many programs.
    pub variable: Option<&'static str>,
}

/// What the values of a setting look like, and their bounds.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A time with its unit, e.g. `1500ms` or `3s`, between two bounds.
    Duration(Duration, Duration),
    /// A whole number between two bounds.
    Count(u64, u64),
    /// A number of bytes, e.g. `8MiB`, between two bounds.
    Bytes(u64, u64),
    /// Any text that the function does not refuse.
    Text(Check),
    /// Texts separated by commas, or the flag given several times.
    List(Check),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `true` or `false`; as a flag also without a value.
    Flag,
    /// An address to listen on, e.g. `127.0.0.1:9100`.
    Address,
    /// A URL that may carry a password: never shown.
    Secret,
}

/// Says why a text is refused.
pub type Check = fn(&str) -> Result<(), String>;

fn anything(_: &str) -> Result<(), String> {
    Ok(())
}

impl Setting {
    const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            help,
            variable: None,
        }
    }

    /// A time between two bounds.
    #[must_use]
    pub const fn duration(
        name: &'static str,
        default: &'static str,
        bounds: (Duration, Duration),
        help: &'static str,
    ) -> Self {
        Self::new(name, Kind::Duration(bounds.0, bounds.1), default, help)
    }

    /// A whole number between two bounds.
    #[must_use]
    pub const fn count(
        name: &'static str,
        default: &'static str,
        bounds: (u64, u64),
        help: &'static str,
    ) -> Self {
        Self::new(name, Kind::Count(bounds.0, bounds.1), default, help)
    }

    /// A number of bytes between two bounds.
    #[must_use]
    pub const fn bytes(
        name: &'static str,
        default: &'static str,
        bounds: (u64, u64),
        help: &'static str,
    ) -> Self {
        Self::new(name, Kind::Bytes(bounds.0, bounds.1), default, help)
    }

    /// A text; see [`Setting::checked`].
    #[must_use]
    pub const fn text(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self::new(name, Kind::Text(anything), default, help)
    }

    /// Several texts; see [`Setting::checked`].
    #[must_use]
    pub const fn list(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self::new(name, Kind::List(anything), default, help)
    }

    /// One of a few words.
    #[must_use]
    pub const fn choice(
        name: &'static str,
        default: &'static str,
        words: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self::new(name, Kind::Choice(words), default, help)
    }

    /// On or off.
    #[must_use]
    pub const fn flag(name: &'static str, default: bool, help: &'static str) -> Self {
        let default = if default { "true" } else { "false" };
        Self::new(name, Kind::Flag, default, help)
    }

    /// An address to listen on.
    #[must_use]
    pub const fn address(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self::new(name, Kind::Address, default, help)
    }

    /// A URL that may carry a password. `variable` is read besides the process's own.
    #[must_use]
    pub const fn secret(name: &'static str, variable: &'static str, help: &'static str) -> Self {
        Self {
            variable: Some(variable),
            ..Self::new(name, Kind::Secret, "", help)
        }
    }

    /// The same text or list, each value looked at by `check`.
    #[must_use]
    pub const fn checked(self, check: Check) -> Self {
        let kind = match self.kind {
            Kind::List(_) => Kind::List(check),
            Kind::Text(_) => Kind::Text(check),
            other @ (Kind::Duration(..)
            | Kind::Count(..)
            | Kind::Bytes(..)
            | Kind::Choice(_)
            | Kind::Flag
            | Kind::Address
            | Kind::Secret) => other,
        };
        Self { kind, ..self }
    }

    fn flag_name(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    fn variable_name(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.name.to_uppercase())
    }
}
