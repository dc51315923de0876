//! Where settings come from, as values, so that tests need no environment of their own.

use std::ffi::OsString;

use super::Problems;

/// The arguments (without the program's name) and the environment to read.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The arguments after the program's name.
    pub arguments: Vec<OsString>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
}

impl Sources {
    /// Those of this operating system process.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self {
            arguments: std::env::args_os().skip(1).collect(),
            environment: std::env::vars_os().collect(),
        }
    }

    /// For tests: arguments and variables as text.
    #[must_use]
    pub fn of(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self {
            arguments: arguments.iter().map(OsString::from).collect(),
            environment: environment
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        }
    }

    pub(super) fn argument_texts(&self, problems: &mut Problems) -> Vec<String> {
        let texts = self.arguments.iter().filter_map(|argument| {
            argument.to_str().map(str::to_owned).or_else(|| {
                problems.push(format!("argument {argument:?} is not UTF-8"));
                None
            })
        });
        texts.collect()
    }

    /// The variables whose name is `wanted`; the others are nobody's business, UTF-8 or not.
    pub(super) fn variables(
        &self,
        wanted: impl Fn(&str) -> bool,
        problems: &mut Problems,
    ) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (name, value) in &self.environment {
            let Some(name) = name.to_str().filter(|name| wanted(name)) else {
                continue;
            };
            match value.to_str() {
                Some(value) => found.push((name.to_owned(), value.to_owned())),
                None => problems.push(format!("environment {name}: the value is not UTF-8")),
            }
        }
        found.sort();
        found
    }
}
