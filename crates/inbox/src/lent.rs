//! A connection lent by the pool, which gets it back only in a known state.

use std::future::Future;
use std::time::Duration;

use deadpool_postgres::{Object, Pool};

use crate::effect::Refusal;
use crate::failure::{InboxError, Remedy, spoils_connection};

/// Dropped without [`Lent::settle`] (the future was cancelled), the connection is closed.
pub(crate) struct Lent(Option<Object>);

/// How a transaction ended other than well. Nothing was written, unless only the answer to its
/// COMMIT was lost: then doing it again finds the receipts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{}", crate::failure::shown(.0))]
    Database(#[from] tokio_postgres::Error),
    #[error("the effect refuses: {0}")]
    Effect(Refusal),
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error(transparent)]
    Inbox(#[from] InboxError),
}

impl Lent {
    pub(crate) async fn get(pool: &Pool) -> Result<Self, InboxError> {
        Ok(Self(Some(pool.get().await?)))
    }

    pub(crate) fn client(&mut self) -> Result<&mut Object, InboxError> {
        let gone = || InboxError::Away("the connection was given back".to_owned());
        self.0.as_mut().ok_or_else(gone)
    }

    /// Gives it back, unless the result says that nobody should use it again.
    pub(crate) fn settle<T>(mut self, result: &Result<T, Failure>) {
        let spoilt = match result {
            Ok(_) => false,
            Err(Failure::Database(error) | Failure::Effect(Refusal::Database(error))) => {
                spoils_connection(error)
            }
            Err(Failure::Effect(Refusal::Later(_) | Refusal::Never(_))) => false,
            Err(Failure::Late(_) | Failure::Inbox(_)) => true,
        };
        if !spoilt {
            drop(self.0.take());
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            drop(Object::take(object));
        }
    }
}

/// Ends what takes longer than the deadline; the connection must not be used again then.
pub(crate) async fn within<T>(
    deadline: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::time::timeout(deadline, work)
        .await
        .unwrap_or(Err(Failure::Late(deadline)))
}

impl From<Failure> for InboxError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Database(error) => error.into(),
            Failure::Late(after) => Self::Away(format!("no answer within {after:?}")),
            Failure::Inbox(error) => error,
            Failure::Effect(refusal) => Self::Refused(refusal.to_string()),
        }
    }
}

impl Failure {
    /// What helps.
    pub(crate) fn remedy(&self) -> Remedy {
        match self {
            Self::Database(error) | Self::Effect(Refusal::Database(error)) => {
                crate::failure::remedy(error)
            }
            Self::Effect(Refusal::Later(_) | Refusal::Never(_)) => Remedy::Refused,
            Self::Late(_) => Remedy::Away,
            Self::Inbox(error) => error.remedy(),
        }
    }
}
