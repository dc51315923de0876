//! Bugs that are planted to prove that the tests would see them. Without the feature `mutants` there
//! is nothing here, and no branch that asks for one is compiled.
//!
//! `TICKETFLOW_MUTANT` names the one that is planted.

use std::borrow::Cow;

/// Events are marked as published when they were handed to the client.
pub const MARK_BEFORE_CONFIRM: &str = "mark-before-confirm";
/// A settle does not ask whether the lanes are still its own.
pub const SETTLE_WITHOUT_TOKEN: &str = "settle-without-token";
/// A message that came back counts as confirmed.
pub const RETURNED_IS_OK: &str = "returned-is-ok";
/// A missing answer counts against the event.
pub const TIMEOUT_IS_FAILURE: &str = "timeout-is-failure";
/// Leases are judged by the time at which the transaction began.
pub const LEASE_BY_NOW: &str = "lease-by-now";
/// Rows below the highest published position are taken for done.
pub const WATERMARK_CLAIM: &str = "watermark-claim";
/// The next event of an aggregate does not wait for the one before it.
pub const NO_WAVES: &str = "no-waves";
/// A settle does not ask whether a queue was made anew since the claim.
pub const NO_GENERATIONS: &str = "no-generations";

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
pub(crate) fn bent(name: &str, text: &'static str, part: &str, by: &str) -> Cow<'static, str> {
    if is_planted(name) {
        assert!(text.contains(part), "{name} has nothing to replace: {part}");
        return Cow::Owned(text.replace(part, by));
    }
    Cow::Borrowed(text)
}
