//! At start: wait for the database, and refuse tables of another version.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::error::{DatabaseError, Remedy};
use super::pool::Database;
use crate::backoff::Backoff;
use crate::readiness::Condition;

const BASE: Duration = Duration::from_millis(200);
const CAP: Duration = Duration::from_secs(5);

/// Why a process cannot work with its database.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It cannot be used as the settings say.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The tables are of another version.
    #[error(transparent)]
    Schema(#[from] schema::SchemaError),
    /// It was stopped before the database answered.
    #[error("stopped before the database answered")]
    Stopped,
}

impl Database {
    /// Waits until the database answers and its tables are of the version of this program.
    ///
    /// A database that is away is waited for, and `condition` says so; a wrong password, a missing
    /// role or tables of another version end the process, since waiting does not help.
    ///
    /// # Errors
    /// [`StartError`] says what to do.
    pub async fn ready(
        &self,
        condition: &Condition,
        shutdown: &CancellationToken,
    ) -> Result<(), StartError> {
        let mut backoff = Backoff::new(BASE, CAP);
        loop {
            match self.check_schema().await {
                Ok(()) => {
                    condition.holds();
                    return Ok(());
                }
                Err(StartError::Database(error)) if waits(&error) => {
                    condition.fails(error.to_string());
                    tracing::warn!(%error, "waiting for the database");
                }
                Err(error) => return Err(error),
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.next_delay()) => {}
                () = shutdown.cancelled() => return Err(StartError::Stopped),
            }
        }
    }

    /// Looks once whether the tables are of the version of this program.
    ///
    /// # Errors
    /// [`StartError`] says what to do.
    pub async fn check_schema(&self) -> Result<(), StartError> {
        let session = self.session("start").await.map_err(explained)?;
        let within = self.config().connect_timeout;
        let checked = tokio::time::timeout(within, schema::check(&session)).await;
        match checked.map_err(|_| DatabaseError::Deadline(within))? {
            Err(schema::SchemaError::Database(error)) => Err(DatabaseError::from(error).into()),
            other => Ok(other?),
        }
    }
}

fn waits(error: &DatabaseError) -> bool {
    matches!(error.remedy(), Remedy::Wait | Remedy::Again)
}

/// Without the role there was no migration yet, or another one: say so.
fn explained(mut error: DatabaseError) -> DatabaseError {
    if let DatabaseError::Invalid(told) = &mut error
        && told.sqlstate.as_deref() == Some("22023")
    {
        told.hint = Some("run `ticketflow migrate`, or set another database_role".to_owned());
    }
    error
}
