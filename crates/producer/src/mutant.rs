//! Bugs of writing that may be planted, see [`proof::mutant`].

pub(crate) use proof::mutant::is_planted;

/// A change of a ticket is committed before its event is recorded.
pub(crate) const TICKET_BEFORE_EVENT: &str = "ticket-before-event";
