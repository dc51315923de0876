//! The inbox: each effect of each event applied to the database exactly once.
//!
//! A service implements [`Effect`], reads what its queue delivers with [`Delivery::read`], hands
//! it to [`Inbox::apply_once`] or [`Inbox::apply_set`], and acks when that returned. In one
//! transaction it writes the receipt (whose key alone decides what is a duplicate), applies the
//! effect, and keeps in a row what could not be applied.
//!
//! Locks are taken in one order everywhere: receipts, heads, rows, each in key order. What may
//! still be applied gets its row under the receipt's key, so that it can never cross an apply. The
//! isolation is READ COMMITTED, and what is read to decide is read in a statement later than the
//! lock it depends on.

mod batch;
mod conflicts;
#[doc(hidden)]
pub mod crash;
mod delivery;
mod effect;
mod failure;
mod inbox;
mod lent;
#[doc(hidden)]
pub mod mutant;
mod operate;
mod order;
mod outcome;
mod policy;
mod receipts;
mod retention;
mod retry;
mod rows;
mod sorted;
mod standing;
mod stored;
mod suspect;
mod waiting;

pub use conflicts::CONFLICTS;
pub use delivery::Delivery;
pub use effect::{Applicable, Effect, Place, Refusal};
pub use failure::{InboxError, Remedy};
pub use inbox::Inbox;
pub use operate::{ParkedFilter, Skipped, applicable, redrive, skip};
pub use outcome::{Outcome, Reason};
pub use policy::Policy;
pub use retention::Retained;
pub use retry::Due;
