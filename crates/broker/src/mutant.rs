//! Bugs that are planted to prove that the tests would see them; nothing without the feature
//! `mutants`. `TICKETFLOW_MUTANT` names the one that is planted.

/// Messages are published without `mandatory`.
pub(crate) const NO_MANDATORY: &str = "no-mandatory";

#[cfg(not(feature = "mutants"))]
pub(crate) const fn is_planted(_: &str) -> bool {
    false
}

#[cfg(feature = "mutants")]
pub(crate) fn is_planted(name: &str) -> bool {
    std::env::var("TICKETFLOW_MUTANT").is_ok_and(|planted| planted == name)
}
