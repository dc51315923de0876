//! Bugs of outside effects that may be planted, see [`proof::mutant`].

pub(crate) use proof::mutant::is_planted;

/// A time-out counts as a failure: nothing is in doubt, and the task is sent again unasked.
pub(crate) const TIMEOUT_IS_FAILURE: &str = "outside-timeout-is-failure";
/// Each try has a key of its own.
pub(crate) const KEY_PER_TRY: &str = "outside-key-per-try";
/// A settle changes the row whoever has claimed it.
pub(crate) const SETTLE_WITHOUT_TOKEN: &str = "outside-settle-without-token";
/// Redirects are followed.
pub(crate) const FOLLOW_REDIRECTS: &str = "outside-follow-redirects";
/// Names are called wherever they lead.
pub(crate) const NAMES_UNCHECKED: &str = "outside-names-unchecked";
/// The circuit never opens.
pub(crate) const NO_CIRCUIT: &str = "outside-no-circuit";
/// Tenants do not take turns: the first one's tasks go first.
pub(crate) const NO_TURNS: &str = "outside-no-turns";
