//! Which queues must exist, and that nothing counts as published which one of them has missed.
//!
//! A message that is confirmed and not returned is in *every queue it was routed to*; it may have
//! been routed to one of two. So a pool's events may be published only while all its queues are
//! there, and a queue that had to be made again gets what it missed. The table `effect_queues`
//! says which queues there must be, each with three counters:
//!
//! 1. Whoever finds a queue missing, or is about to make one, raises `generation` and commits.
//!    From then on claims leave the pool alone, and a settle whose claim saw the former generation
//!    counts as nothing.
//! 2. In a second transaction it locks the row, goes on only if the generation is still its own,
//!    declares and binds the queue, and sets `declared_generation`. Whoever dies in between is
//!    followed after [`AT_WORK`] by another, under a new generation.
//! 3. Every published event that this queue should have and for which the effect has neither a
//!    receipt nor a row that waits, read *after* the declare, is sent to that one queue again, in
//!    position order under its own id; then `ready_generation` is set, and claims go on.
//!
//! A receipt makes a second delivery harmless, so doing any of it twice costs duplicates only;
//! every step was needed in a model of it.

mod error;
mod generation;
mod patterns;
mod pools;
mod refill;
mod replay;
pub mod settings;
mod statement;
mod verified;
mod verify;
mod watch;

pub use error::TopologyError;
pub use generation::AT_WORK;
pub use pools::QueueRow;
pub use replay::Replay;
pub use verified::{Standing, Verified};
pub use verify::Topology;
pub use watch::{VERIFY_EVERY, keep};
