//! Errors sorted by what helps against them, from SQLSTATEs alone: a message's text depends on
//! the server's language, and its DETAIL prints whole rows.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

/// What helps against an error of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The same transaction again, soon.
    Again,
    /// Waiting until the database is back, over another connection.
    Away,
    /// Nothing: what was asked for is refused.
    Refused,
}

/// Why the inbox could not decide about a delivery. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// The database is away or does not take writes: stop taking deliveries until it does.
    #[error("the database is away: {0}")]
    Away(String),
    /// A transaction lost against others, several times over.
    #[error("the transaction lost against others: {0}")]
    Busy(String),
    /// A statement of the inbox itself was refused.
    #[error("the database refuses a statement of the inbox: {0}")]
    Refused(String),
    /// A stored row does not decode.
    #[error("stored delivery {delivery_id} does not decode: {reason}")]
    Undecodable {
        /// The row.
        delivery_id: i64,
        /// What is wrong with it.
        reason: String,
    },
}

impl InboxError {
    /// What helps.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Away(_) => Remedy::Away,
            Self::Busy(_) => Remedy::Again,
            Self::Refused(_) | Self::Undecodable { .. } => Remedy::Refused,
        }
    }
}

impl From<tokio_postgres::Error> for InboxError {
    fn from(error: tokio_postgres::Error) -> Self {
        let text = shown(&error);
        match remedy(&error) {
            Remedy::Again => Self::Busy(text),
            Remedy::Away => Self::Away(text),
            Remedy::Refused => Self::Refused(text),
        }
    }
}

impl From<PoolError> for InboxError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => match error.code() {
                // Whatever keeps us from a connection is for waiting, never a delivery's fault.
                Some(_) => Self::Away(shown(&error)),
                None => error.into(),
            },
            other @ (PoolError::Timeout(_)
            | PoolError::Closed
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_)) => Self::Away(other.to_string()),
        }
    }
}

/// What helps against this error.
pub(crate) fn remedy(error: &tokio_postgres::Error) -> Remedy {
    let Some(code) = error.code() else {
        // No answer of the server: the connection is gone, or a value did not convert.
        let conversion = error.is_closed() || is_transport(error);
        return if conversion {
            Remedy::Away
        } else {
            Remedy::Refused
        };
    };
    match code.code() {
        "40001" | "40P01" | "55P03" => Remedy::Again,
        // A changed result type: only this connection's prepared statement is out of date.
        "0A000" if is_cached_plan(error) => Remedy::Again,
        "25006" => Remedy::Away,
        other
            if ["08", "53", "57P", "58"]
                .iter()
                .any(|class| other.starts_with(class)) =>
        {
            Remedy::Away
        }
        _ => Remedy::Refused,
    }
}

/// Whether the connection should not go back to the pool after this error.
pub(crate) fn spoils_connection(error: &tokio_postgres::Error) -> bool {
    remedy(error) == Remedy::Away || error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED)
}

/// The error in words that may be logged and stored: SQLSTATE, message and constraint, no DETAIL.
pub(crate) fn shown(error: &tokio_postgres::Error) -> String {
    let Some(db) = error.as_db_error() else {
        let source = std::error::Error::source(error);
        return source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
    };
    let constraint = db
        .constraint()
        .map(|name| format!(" (constraint {name})"))
        .unwrap_or_default();
    format!("{} {}{constraint}", db.code().code(), db.message())
}

fn is_transport(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}

fn is_cached_plan(error: &tokio_postgres::Error) -> bool {
    // 0A000 is also "not supported"; only a server routine tells the two apart in any language.
    error
        .as_db_error()
        .and_then(tokio_postgres::error::DbError::routine)
        == Some("RevalidateCachedQuery")
}
