//! The seams of the relay's cycle, see [`proof::crash`].

pub(crate) use proof::crash::point;

/// Lanes are leased and rows read; the claim is committed.
pub(crate) const CLAIMED_NOT_PUBLISHED: &str = "claimed-not-published";
/// A wave is about to be handed to the client.
pub(crate) const PUBLISHING: &str = "publishing";
/// All answers of a wave are in, nothing is written.
pub(crate) const CONFIRMED_NOT_SETTLED: &str = "confirmed-not-settled";
/// The settle is committed.
pub(crate) const SETTLED: &str = "settled";
/// A try is written down, the event not yet sent.
pub(crate) const TRY_WRITTEN: &str = "try-written";
