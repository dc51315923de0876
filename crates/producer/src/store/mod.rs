//! The producer's tables: writing a ticket with its event, and reading tickets.

mod read;
mod write;

use std::time::Duration;

use runtime::database::Database;

pub(crate) use read::{Query, ReadError};
pub(crate) use write::{Answer, Outcome, Request, WriteError};

/// The database as the handlers use it.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    database: Database,
    /// How long one request may take here; what became of it is found out for so long.
    within: Duration,
}

impl Store {
    pub(crate) fn new(database: Database, within: Duration) -> Self {
        Self { database, within }
    }
}
