//! The benches, one a file.

pub mod drain;
pub mod latency;

/// The effect whose queue takes the events of most benches.
pub(crate) const EFFECT: (&str, &str) = ("search", "ticket.#");

/// Its queue.
pub(crate) const QUEUE: &str = "ticketflow.shared.search";
