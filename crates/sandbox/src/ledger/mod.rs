//! The ledger: checks a whole run by comparing everything that knows of an event.
//!
//! Five sources are put side by side: what the *driver* was told is committed, the *outbox*, the
//! *wire* (a [`Tap`]: a queue beside those of the effects), the *receipts*, and the *effects*.
//! Nothing may be lost, invented, doubled or out of order, and tenant and bytes are the same
//! everywhere. Reading ([`Facts::read`]) is apart from judging ([`judge`]), which is a function of
//! the facts alone and has tests with each kind of lie planted.

mod facts;
mod judge;
mod patterns;
mod report;
mod tap;
mod wire;

pub use facts::{AuditEntry, Facts, OutboxRow, Takes};
pub use judge::judge;
pub use patterns::matches;
pub use report::LedgerReport;
pub use tap::{Tap, TapQueue};
pub use wire::{Arrival, Wire};

use std::collections::{HashMap, HashSet};

use event::Identity;
use tokio_postgres::Client;

use crate::error::SandboxError;

/// What the driver of a run knows to be committed.
#[derive(Debug, Clone, Default)]
pub struct Committed {
    /// Events whose transaction was answered with success, with the aggregate and its version.
    pub events: HashMap<Identity, (String, i64)>,
    /// Events of transactions whose answer got lost: they may be there or not, but not in part.
    pub unknown: HashSet<Identity>,
    /// Whether nobody else recorded: what is not in here is then an invention.
    pub complete: bool,
    /// Whether events may be parked, and deliveries deferred, when the run is judged.
    pub may_wait: bool,
}

/// Reads the tables and judges a run.
///
/// # Errors
/// [`SandboxError::Database`] if the tables cannot be read.
pub async fn check(
    client: &Client,
    committed: &Committed,
    wire: &Wire,
) -> Result<LedgerReport, SandboxError> {
    let facts = Facts::read(client).await?;
    Ok(judge(committed, &facts, wire))
}
