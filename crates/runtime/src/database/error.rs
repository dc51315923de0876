//! Errors of the database, sorted by what helps against them, and told without row contents.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

/// What helps against an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The transaction again, with jitter: it met another one, or a connection that is spent.
    Again,
    /// Wait until the database can be used again.
    Wait,
    /// Look whether it was committed: the answer to COMMIT was lost.
    Look,
    /// Other data: a constraint refused these.
    OtherData,
    /// A person: the set-up or the program is wrong.
    Person,
}

/// An error of the database.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DatabaseError {
    /// Serialization failure, deadlock, lock time-out, or a connection that is spent.
    #[error("met another transaction: {0}")]
    Transient(Told),
    /// Away, starting, stopping, read-only, out of connections or disk.
    #[error("database unavailable: {0}")]
    Unavailable(Told),
    /// Our own deadline passed before COMMIT was sent: nothing was written.
    #[error("database unavailable: no answer within {0:?}")]
    Deadline(Duration),
    /// The connection was lost, or the deadline passed, while COMMIT was under way.
    #[error("it is not known whether the transaction was committed: {0}")]
    OutcomeUnknown(Told),
    /// A constraint refused the data.
    #[error("refused by a constraint: {0}")]
    Integrity(Told),
    /// Everything else: wrong password, missing table, wrong type.
    #[error("database: {0}")]
    Invalid(Told),
}

/// What the server or the client said, without DETAIL: that prints whole rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The message.
    pub message: String,
    /// The five letters, if the server sent it.
    pub sqlstate: Option<String>,
    /// The constraint that refused the data.
    pub constraint: Option<String>,
    /// What the server suggests.
    pub hint: Option<String>,
}

impl DatabaseError {
    /// What helps against it.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Transient(_) => Remedy::Again,
            Self::Unavailable(_) | Self::Deadline(_) => Remedy::Wait,
            Self::OutcomeUnknown(_) => Remedy::Look,
            Self::Integrity(_) => Remedy::OtherData,
            Self::Invalid(_) => Remedy::Person,
        }
    }

    /// What was said, if it was not our own deadline.
    #[must_use]
    pub fn told(&self) -> Option<&Told> {
        match self {
            Self::Transient(told)
            | Self::Unavailable(told)
            | Self::OutcomeUnknown(told)
            | Self::Integrity(told)
            | Self::Invalid(told) => Some(told),
            Self::Deadline(_) => None,
        }
    }

    /// The error of a COMMIT: unless the server itself refused it, nobody knows.
    pub(super) fn of_commit(error: &tokio_postgres::Error) -> Self {
        let refused = error.as_db_error().is_some() && !lost(error);
        if refused {
            Self::from_client(error)
        } else {
            Self::OutcomeUnknown(Told::of(error))
        }
    }

    pub(super) fn from_client(error: &tokio_postgres::Error) -> Self {
        let told = Told::of(error);
        match classify(error) {
            Remedy::Again => Self::Transient(told),
            Remedy::Wait => Self::Unavailable(told),
            Remedy::Look => Self::OutcomeUnknown(told),
            Remedy::OtherData => Self::Integrity(told),
            Remedy::Person => Self::Invalid(told),
        }
    }

    /// The same, naming the server.
    pub(super) fn at(mut self, server: &str) -> Self {
        if let Self::Transient(told)
        | Self::Unavailable(told)
        | Self::OutcomeUnknown(told)
        | Self::Integrity(told)
        | Self::Invalid(told) = &mut self
        {
            told.message = format!("{server}: {}", told.message);
        }
        self
    }

    pub(super) fn set_up(problem: impl Into<String>) -> Self {
        Self::Invalid(Told::plain(problem))
    }

    pub(super) fn unanswered(problem: impl Into<String>) -> Self {
        Self::OutcomeUnknown(Told::plain(problem))
    }

    pub(super) fn away(problem: impl Into<String>) -> Self {
        Self::Unavailable(Told::plain(problem))
    }
}

impl From<tokio_postgres::Error> for DatabaseError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::from_client(&error)
    }
}

impl From<PoolError> for DatabaseError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::from_client(&error),
            PoolError::Timeout(_) => Self::away("no free connection in time"),
            PoolError::Closed => Self::away("the pool is closed"),
            PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                Self::set_up(error.to_string())
            }
        }
    }
}

impl Told {
    fn of(error: &tokio_postgres::Error) -> Self {
        let Some(server) = error.as_db_error() else {
            let cause = error.source().map(|source| format!(": {source}"));
            return Self::plain(format!("{error}{}", cause.unwrap_or_default()));
        };
        Self {
            message: server.message().to_owned(),
            sqlstate: Some(server.code().code().to_owned()),
            constraint: server.constraint().map(str::to_owned),
            hint: server.hint().map(str::to_owned),
        }
    }

    fn plain(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            sqlstate: None,
            constraint: None,
            hint: None,
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(formatter, "; {hint}")?;
        }
        if let Some(code) = &self.sqlstate {
            write!(formatter, " ({code})")?;
        }
        Ok(())
    }
}

/// What helps against any error that a database error is behind.
#[must_use]
pub fn remedy_of(error: &(dyn Error + 'static)) -> Option<Remedy> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ours) = error.downcast_ref::<DatabaseError>() {
            return Some(ours.remedy());
        }
        if let Some(client) = error.downcast_ref::<tokio_postgres::Error>() {
            return Some(classify(client));
        }
        next = error.source();
    }
    None
}

/// Whether the connection that an error came over must not be used again.
pub(super) fn spends_connection(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ours) = error.downcast_ref::<DatabaseError>() {
            let code = ours.told().and_then(|told| told.sqlstate.as_deref());
            let unknown = matches!(ours.remedy(), Remedy::Look);
            return unknown || code.is_some_and(|code| spent(&SqlState::from_code(code)));
        }
        if let Some(client) = error.downcast_ref::<tokio_postgres::Error>() {
            return lost(client) || client.code().is_some_and(spent);
        }
        next = error.source();
    }
    false
}

/// A read-only server after a failover, one that goes down, a plan or a prepared statement that
/// no longer fits: a fresh connection has none of these.
fn spent(code: &SqlState) -> bool {
    let codes = [
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::FEATURE_NOT_SUPPORTED,
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    codes.contains(code) || code.code().starts_with("57P") || code.code().starts_with("08")
}

fn lost(error: &tokio_postgres::Error) -> bool {
    error.is_closed()
        || error
            .code()
            .is_some_and(|code| code.code().starts_with("57P"))
}

fn classify(error: &tokio_postgres::Error) -> Remedy {
    let Some(code) = error.code() else {
        return classify_client(error);
    };
    let again = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::FEATURE_NOT_SUPPORTED,
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    let wait = [
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::QUERY_CANCELED,
    ];
    match code.code().get(..2) {
        _ if again.contains(code) => Remedy::Again,
        _ if wait.contains(code) => Remedy::Wait,
        _ if *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN => Remedy::Look,
        Some("08" | "53" | "57" | "58") => Remedy::Wait,
        Some("23") => Remedy::OtherData,
        _ => Remedy::Person,
    }
}

/// Without a code it is the link (wait), or a value that does not fit its parameter (a bug), or a
/// certificate that is not trusted (waiting does not help).
fn classify_client(error: &tokio_postgres::Error) -> Remedy {
    let io = error
        .source()
        .and_then(|source| source.downcast_ref::<std::io::Error>());
    if io.is_some_and(|io| io.kind() == std::io::ErrorKind::InvalidData) {
        return Remedy::Person;
    }
    // The kinds of this error are private; only its text tells that the server was not reached.
    let text = error.to_string();
    let not_reached = text.contains("connecting") || text.contains("timeout");
    if error.is_closed() || io.is_some() || not_reached {
        Remedy::Wait
    } else {
        Remedy::Person
    }
}
