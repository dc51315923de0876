//! The benches, one a file.

pub mod consume;
pub mod create;
pub mod drain;
pub mod fairness;
pub mod growth;
pub mod latency;
pub mod pinned;
pub mod recover;
pub mod scale;

/// The effect whose queue takes the events of most benches.
pub(crate) const EFFECT: (&str, &str) = ("search", "ticket.#");

/// Its queue.
pub(crate) const QUEUE: &str = "ticketflow.shared.search";
