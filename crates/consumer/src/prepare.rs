//! What has to be read and written before the first delivery, again and again until it is done.

use std::time::Duration;

use inbox::{Inbox, InboxError};
use runtime::backoff::Backoff;
use runtime::database::{Database, DatabaseError, Remedy};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::marks::Mark;
use crate::pauses::{self, Paused};

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(5);

/// What a start needs to know.
pub(crate) struct Prepared {
    /// Whether the last stop was not clean.
    pub(crate) careful: bool,
    /// What is paused.
    pub(crate) paused: Paused,
}

/// Why a start cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The database refuses.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The inbox is refused something.
    #[error(transparent)]
    Inbox(#[from] InboxError),
}

impl PrepareError {
    fn waits(&self) -> bool {
        match self {
            Self::Database(error) => match error.remedy() {
                Remedy::Again | Remedy::Wait | Remedy::Look => true,
                Remedy::OtherData | Remedy::Person => false,
            },
            Self::Inbox(error) => error.remedy() != inbox::Remedy::Refused,
        }
    }
}

/// Prepares a start. None: the process was stopped before the database did what it should.
pub(crate) async fn prepare(
    (database, inbox): (&Database, &Inbox),
    config: &Config,
    mark: Mark,
    stop: &CancellationToken,
) -> Result<Option<Prepared>, PrepareError> {
    let mut backoff = Backoff::new(BASE, CAP);
    loop {
        match once(database, inbox, config, mark).await {
            Ok(prepared) => return Ok(Some(prepared)),
            Err(error) if error.waits() => tracing::warn!(%error, "the start waits"),
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.next_delay()) => {}
            () = stop.cancelled() => return Ok(None),
        }
    }
}

async fn once(
    database: &Database,
    inbox: &Inbox,
    config: &Config,
    mark: Mark,
) -> Result<Prepared, PrepareError> {
    let careful = mark.set(database, &config.name).await?;
    let paused = pauses::read(database).await?;
    // Nobody may have kept house for longer than the window.
    inbox.raise_floor(config.window.kept).await?;
    Ok(Prepared { careful, paused })
}
