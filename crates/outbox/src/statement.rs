//! Running a statement: prepared once per connection, under its text.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// The rows of a statement.
pub(crate) async fn rows(
    transaction: &Transaction<'_>,
    text: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let statement = transaction.prepare_cached(text).await?;
    transaction.query(&statement, values).await
}

/// How many rows a statement changed.
pub(crate) async fn changed(
    transaction: &Transaction<'_>,
    text: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<u64, tokio_postgres::Error> {
    let statement = transaction.prepare_cached(text).await?;
    transaction.execute(&statement, values).await
}

/// Plans and durability for this transaction; goes out together with the first real statement.
pub(crate) async fn set_up(transaction: &Transaction<'_>) -> Result<(), tokio_postgres::Error> {
    rows(transaction, include_str!("sql/set_up.sql"), &[])
        .await
        .map(drop)
}
