//! Bugs of applying that may be planted, see [`proof::mutant`].

pub use proof::mutant::{bent, is_planted};

/// The receipt is committed before the effect.
pub const RECEIPT_OUTSIDE: &str = "receipt-outside-the-transaction";
/// What the effect refuses gets no row: the delivery is acknowledged and forgotten.
pub const REFUSED_IS_DROPPED: &str = "refused-is-dropped";
/// Any unique violation counts as a duplicate.
pub const UNIQUE_IS_DUPLICATE: &str = "any-unique-violation-is-a-duplicate";
/// One receipt stands for all effects of an event.
pub const RECEIPT_OF_EVENT: &str = "receipt-of-the-event-alone";
/// Events are applied in the order in which they come.
pub const NO_ORDER: &str = "no-order";
/// A receipt that is there already does not say duplicate.
pub const NEVER_DUPLICATE: &str = "never-a-duplicate";
/// Other contents of an identity are not looked for.
pub const NO_CONFLICTS: &str = "no-conflicts";
/// The source is no part of the identity.
pub const NO_NAMESPACE: &str = "no-namespace";
/// What is older than the window is applied.
pub const NO_FLOOR: &str = "no-floor";
/// Deliveries are acknowledged before anything is committed.
pub const ACK_BEFORE_COMMIT: &str = "ack-before-commit";
/// What the broker delivers again was done before.
pub const REDELIVERED_IS_DONE: &str = "redelivered-is-done";
/// The tenant is the one that the payload names.
pub const TENANT_FROM_PAYLOAD: &str = "tenant-from-payload";
/// An older version replaces a newer one.
pub const SEARCH_GOES_BACK: &str = "search-goes-back";
