//! One statement that is a transaction of its own: one round trip, committed when it answers.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::{DatabaseError, spends_connection};
use super::pool::Database;

/// The server ends a statement at its time-out; its word of that needs as long to get here.
const ANSWER_MARGIN: Duration = Duration::from_secs(1);

impl Database {
    /// Calls a statement that gives one row, prepared once per connection under its text. The
    /// server commits it by itself, so there is no transaction to be left open.
    ///
    /// It has to get a connection within `start`. Then it is the server's statement time-out that
    /// ends it, so that its end is certain; only a server that says nothing at all leaves it open.
    ///
    /// # Errors
    /// [`DatabaseError::OutcomeUnknown`] if the answer did not arrive; anything else means that
    /// nothing was written.
    pub async fn call(
        &self,
        start: Duration,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, DatabaseError> {
        let started = timeout(start, async {
            let mut lent = self.lent().await?;
            let connection = lent.connection();
            let connection = connection.ok_or(DatabaseError::away("the connection was taken"))?;
            let statement = connection.prepare_cached(text).await?;
            Ok::<_, DatabaseError>((lent, statement))
        });
        let started = started.await.map_err(|_| DatabaseError::Deadline(start))?;
        let (mut lent, statement) = started?;
        let connection = lent.connection();
        let connection = connection.ok_or(DatabaseError::away("the connection was taken"))?;
        let within = self.config().statement_timeout + ANSWER_MARGIN;
        let outcome = match timeout(within, connection.query_one(&statement, values)).await {
            Ok(answer) => answer.map_err(|error| DatabaseError::of_commit(&error)),
            Err(_) => {
                let lost = format!("no answer within {within:?}");
                return Err(DatabaseError::unanswered(lost));
            }
        };
        match &outcome {
            Err(error) if spends_connection(error) => drop(lent),
            Ok(_) | Err(_) => lent.give_back(),
        }
        outcome
    }
}
