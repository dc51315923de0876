//! Bugs of publishing that may be planted, see [`proof::mutant`].

pub(crate) use proof::mutant::is_planted;

/// Messages are published without `mandatory`.
pub(crate) const NO_MANDATORY: &str = "no-mandatory";
