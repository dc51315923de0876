//! All that is wrong with the settings, told at once.

use std::fmt;

/// Everything that is wrong, one line each, naming where it came from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(Vec<String>);

impl Problems {
    /// This one.
    pub fn one(problem: impl Into<String>) -> Self {
        Self(vec![problem.into()])
    }

    /// Adds one.
    pub fn push(&mut self, problem: impl Into<String>) {
        self.0.push(problem.into());
    }

    /// Adds one if there is one.
    pub fn note(&mut self, checked: Result<(), String>) {
        if let Err(problem) = checked {
            self.push(problem);
        }
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The problems, in the order in which they were found.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(formatter, "{newline}  - {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
