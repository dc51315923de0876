//! Bugs that are planted to show that the tests would see them. Without the feature `mutants` no
//! branch that asks for one is compiled.
//!
//! `TICKETFLOW_MUTANT` names the one that is planted.

use std::borrow::Cow;

/// Whether this bug is planted.
#[cfg(not(feature = "mutants"))]
#[must_use]
pub const fn is_planted(_: &str) -> bool {
    false
}

/// Whether this bug is planted.
#[cfg(feature = "mutants")]
#[must_use]
pub fn is_planted(name: &str) -> bool {
    use std::sync::LazyLock;
    static PLANTED: LazyLock<Option<String>> =
        LazyLock::new(|| std::env::var("TICKETFLOW_MUTANT").ok());
    PLANTED.as_deref() == Some(name)
}

/// A statement, with a part of it replaced if this bug is planted.
#[must_use]
pub fn bent(name: &str, text: &'static str, part: &str, by: &str) -> Cow<'static, str> {
    if is_planted(name) {
        assert!(text.contains(part), "{name} has nothing to replace: {part}");
        return Cow::Owned(text.replace(part, by));
    }
    Cow::Borrowed(text)
}
