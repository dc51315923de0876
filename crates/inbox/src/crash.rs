//! The seams of applying, see [`proof::crash`].

pub use proof::crash::point;

/// The receipts are written, the effect is not.
pub const RECEIPT_NOT_APPLIED: &str = "receipt-not-applied";
/// The effect is written, nothing is committed.
pub const APPLIED_NOT_COMMITTED: &str = "applied-not-committed";
/// All is committed, the deliveries are not acknowledged.
pub const COMMITTED_NOT_ACKED: &str = "committed-not-acked";
/// The try of a suspect is written down, and not yet made.
pub const SUSPECT_TRY_WRITTEN: &str = "suspect-try-written";
