//! Why a command did not do what it was asked to.

use runtime::database::{DatabaseError, Remedy, StartError};

/// A failure as the person at the terminal sees it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The database cannot be used.
    #[error("{0}")]
    Database(#[from] DatabaseError),
    /// The tables are of another version, or cannot be reached.
    #[error("{0}")]
    Start(#[from] StartError),
    /// The migrations could not be applied.
    #[error("{0}")]
    Schema(#[from] schema::SchemaError),
    /// What was named is not there.
    #[error("{0}")]
    NotFound(String),
    /// The command line says too little.
    #[error("{0}")]
    Misused(String),
    /// What was asked for makes no sense as things are.
    #[error("{0}")]
    Refused(String),
    /// A server is away.
    #[error("{0}")]
    Away(String),
}

impl Failure {
    /// The status of the program: 1 refused or failed, 2 a command line that cannot be understood,
    /// 3 not found, 4 a server is away.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            Self::Database(error) => of_database(error),
            Self::Start(StartError::Database(error)) => of_database(error),
            Self::Misused(_) => 2,
            Self::NotFound(_) => 3,
            Self::Away(_) => 4,
            Self::Start(_) | Self::Schema(_) | Self::Refused(_) => 1,
        }
    }
}

fn of_database(error: &DatabaseError) -> u8 {
    match error.remedy() {
        Remedy::Wait => 4,
        Remedy::Again | Remedy::Look | Remedy::OtherData | Remedy::Person => 1,
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<outbox::OutboxError> for Failure {
    fn from(error: outbox::OutboxError) -> Self {
        match error {
            outbox::OutboxError::Database(error) => error.into(),
            outbox::OutboxError::Shape(_) => Self::Refused(error.to_string()),
        }
    }
}

impl From<inbox::InboxError> for Failure {
    fn from(error: inbox::InboxError) -> Self {
        match error.remedy() {
            inbox::Remedy::Away => Self::Away(error.to_string()),
            inbox::Remedy::Again | inbox::Remedy::Refused => Self::Refused(error.to_string()),
        }
    }
}

impl From<topology::TopologyError> for Failure {
    fn from(error: topology::TopologyError) -> Self {
        use topology::TopologyError as Error;
        match error {
            Error::Database(error) => error.into(),
            Error::Statement(error) => error.into(),
            Error::Broker(error) | Error::Declare(broker::DeclareError::Broker(error))
                if !error.is_permanent() =>
            {
                Self::Away(format!("RabbitMQ: {error}"))
            }
            Error::Broker(_) | Error::Declare(_) | Error::Name(_) | Error::Refill { .. } => {
                Self::Refused(error.to_string())
            }
        }
    }
}
