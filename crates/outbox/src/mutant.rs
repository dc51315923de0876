//! Bugs of claiming and settling that may be planted, see [`proof::mutant`].

pub use proof::mutant::{bent, is_planted};

/// Events are marked as published when they were handed to the client.
pub const MARK_BEFORE_CONFIRM: &str = "mark-before-confirm";
/// A settle does not ask whether the lanes are still its own.
pub const SETTLE_WITHOUT_TOKEN: &str = "settle-without-token";
/// A message that came back counts as confirmed.
pub const RETURNED_IS_OK: &str = "returned-is-ok";
/// A lost link counts as a confirm.
pub const UNKNOWN_IS_OK: &str = "unknown-is-ok";
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
