//! Running one statement in a transaction of its own.

use std::time::Duration;

use runtime::database::{Database, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::TopologyError;

/// Enough for any of the short ones on a busy server.
pub(crate) const SHORT: Duration = Duration::from_secs(10);

/// The rows of a statement, prepared once per connection under its text.
pub(crate) async fn rows(
    transaction: &Transaction<'_>,
    text: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, TopologyError> {
    let statement = transaction.prepare_cached(text).await?;
    Ok(transaction.query(&statement, values).await?)
}

/// The same, as a transaction.
pub(crate) async fn alone(
    database: &Database,
    text: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, TopologyError> {
    database
        .transaction(SHORT, async |transaction| {
            rows(transaction, text, values).await
        })
        .await
}
