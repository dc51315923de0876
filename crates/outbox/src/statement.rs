//! Running a statement: prepared once per connection, under its text.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

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
/// Answers an id from later than recording takes.
pub(crate) async fn set_up(transaction: &Transaction<'_>) -> Result<Uuid, tokio_postgres::Error> {
    let rows = rows(transaction, include_str!("sql/set_up.sql"), &[]).await?;
    rows.first()
        .map_or(Ok(Uuid::max()), |row| row.try_get("ahead"))
}
