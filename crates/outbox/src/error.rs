//! What can go wrong with the outbox.

/// An error of the outbox. Which remedy helps is told by its source.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The database refused, or is away; see the source.
    #[error("the outbox could not be read or written")]
    Database(#[from] tokio_postgres::Error),
    /// The tables are not those this version works with.
    #[error("the outbox has another shape: {0}")]
    Shape(String),
}
