//! The mark that tells the next start whether this one was stopped cleanly.
//!
//! Set at start, removed by a clean stop. One that is found means that a process of this name was
//! killed, or runs beside this one: then a careful start costs little.

use std::time::Duration;

use runtime::database::{Database, DatabaseError, Transaction};
use uuid::Uuid;

const DEADLINE: Duration = Duration::from_secs(5);

/// The mark of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(Uuid);

impl Mark {
    /// One that no other process has.
    pub(crate) fn new() -> Self {
        Self(Uuid::new_v4())
    }

    /// Sets it, and says whether the last stop under this name was not clean.
    pub(crate) async fn set(self, database: &Database, name: &str) -> Result<bool, DatabaseError> {
        let work = async |transaction: &Transaction<'_>| {
            let row = transaction
                .query_one(include_str!("sql/mark_set.sql"), &[&self.0, &name])
                .await?;
            Ok::<bool, DatabaseError>(row.try_get("unclean")?)
        };
        database.transaction(DEADLINE, work).await
    }

    /// Says that the process is still there.
    pub(crate) async fn keep(self, database: &Database) -> Result<(), DatabaseError> {
        self.run(database, include_str!("sql/mark_keep.sql")).await
    }

    /// Removes it: the stop was clean.
    pub(crate) async fn clear(self, database: &Database) -> Result<(), DatabaseError> {
        self.run(database, include_str!("sql/mark_clear.sql")).await
    }

    async fn run(self, database: &Database, statement: &str) -> Result<(), DatabaseError> {
        let work = async |transaction: &Transaction<'_>| {
            transaction.execute(statement, &[&self.0]).await?;
            Ok::<(), DatabaseError>(())
        };
        database.transaction(DEADLINE, work).await
    }
}
