//! The settings as read: typed values by name.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use super::value::Value;

/// All settings of a process, each with a value. Asking for a name or a type that the process's
/// table does not have is a bug of the process, found by whatever starts it once: it panics.
#[derive(Debug, Clone)]
pub struct Settings {
    pub(super) values: BTreeMap<&'static str, Given>,
}

/// A value and where it came from.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) value: Value,
    pub(super) origin: String,
    /// 0 for a default, then file, environment, flag.
    pub(super) rank: u8,
}

macro_rules! getter {
    ($(#[$doc:meta])* $name:ident, $variant:ident, $type:ty, $value:ident => $result:expr) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(&self, name: &str) -> $type {
            match self.given(name).map(|given| &given.value) {
                Some(Value::$variant($value)) => $result,
                other => panic!("the table has no such setting: {name} is {other:?}"),
            }
        }
    };
}

impl Settings {
    getter!(
        /// A time.
        duration, Duration, Duration, value => *value
    );
    getter!(
        /// A whole number, or a number of bytes.
        number, Number, u64, value => *value
    );
    getter!(
        /// A text or a choice; empty when none was given.
        text, Text, &str, value => value.as_str()
    );
    getter!(
        /// Several texts.
        list, List, &[String], value => value.as_slice()
    );
    getter!(
        /// On or off.
        flag, Flag, bool, value => *value
    );
    getter!(
        /// An address to listen on.
        address, Address, SocketAddr, value => *value
    );
    getter!(
        /// A URL with a password, if one was given.
        secret, Secret, Option<SecretString>, value => value.clone()
    );

    /// A whole number as a size in memory.
    #[must_use]
    pub fn size(&self, name: &str) -> usize {
        usize::try_from(self.number(name)).unwrap_or(usize::MAX)
    }

    /// A text as the path of a file, if one was given.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let text = self.text(name);
        (!text.is_empty()).then(|| PathBuf::from(text))
    }

    /// Where the value came from, for messages: `flag --lease`, `default of lease`.
    #[must_use]
    pub fn origin(&self, name: &str) -> &str {
        self.given(name).map_or("nowhere", |given| &given.origin)
    }

    pub(super) fn rank(&self, name: &str) -> u8 {
        self.given(name).map_or(0, |given| given.rank)
    }

    fn given(&self, name: &str) -> Option<&Given> {
        self.values.get(name)
    }
}
