//! Reading the version of the tables.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::{SCHEMA_VERSION, SchemaError};

/// The version of the tables; 0 if there are none.
///
/// # Errors
/// [`SchemaError::Database`] if they cannot be asked.
pub async fn version_of(client: &Client) -> Result<i32, SchemaError> {
    let row = match client.query_one(include_str!("sql/version.sql"), &[]).await {
        Ok(row) => row,
        Err(error) if is_missing(&error) => return Ok(0),
        Err(error) => return Err(error.into()),
    };
    Ok(row.try_get::<_, Option<i32>>(0)?.unwrap_or(0))
}

/// Whether the tables are of exactly the version of this program.
///
/// # Errors
/// [`SchemaError::Older`] or [`SchemaError::Newer`] says what to do.
pub async fn check(client: &Client) -> Result<(), SchemaError> {
    let found = version_of(client).await?;
    match found.cmp(&SCHEMA_VERSION) {
        std::cmp::Ordering::Less => Err(SchemaError::Older { found }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(SchemaError::Newer { found }),
    }
}

fn is_missing(error: &tokio_postgres::Error) -> bool {
    let missing = [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
    error.code().is_some_and(|code| missing.contains(code))
}
