//! Why the queues of a pool could not be verified.

use broker::{BrokerError, DeclareError, PublishOutcome};
use runtime::database::DatabaseError;

/// An error while queues are looked after. All but `Declare` with other arguments pass by
/// themselves.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The broker is away or refuses.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// A queue could not be declared; if it exists with other arguments, a person has to act.
    #[error(transparent)]
    Declare(#[from] DeclareError),
    /// The database is away.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A statement failed.
    #[error("a statement about queues failed: {0}")]
    Statement(#[from] tokio_postgres::Error),
    /// A name in the table breaks its rule.
    #[error(transparent)]
    Name(#[from] event::InvalidName),
    /// An event that a queue had missed was not taken by it.
    #[error("{queue} does not take what it missed: {outcome}")]
    Refill {
        /// The queue.
        queue: String,
        /// The broker's answer.
        outcome: PublishOutcome,
    },
}
