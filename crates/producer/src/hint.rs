//! The hint to idle relays that something was committed.
//!
//! NOTIFY within the business transaction would serialise all commits, so the hint goes out after
//! them, on a connection of its own, many commits becoming one. Nothing depends on it: relays poll.

use std::sync::Arc;
use std::time::Duration;

use runtime::backoff::Backoff;
use runtime::database::{Database, DatabaseError, Session};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::metrics;

const BASE: Duration = Duration::from_millis(200);
const CAP: Duration = Duration::from_secs(10);
/// A hint that takes longer comes too late to be one.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Where commits are told. Clones share one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hint(Arc<Notify>);

impl Hint {
    /// Something was committed.
    pub(crate) fn committed(&self) {
        self.0.notify_one();
    }

    /// Sends hints until stopped.
    pub(crate) async fn send(
        self,
        database: Database,
        interval: Duration,
        shutdown: CancellationToken,
    ) -> Result<(), DatabaseError> {
        let mut backoff = Backoff::new(BASE, CAP);
        loop {
            let sent = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                sent = self.over_one_connection(&database, interval, &mut backoff) => sent,
            };
            if let Err(error) = sent {
                tracing::debug!(%error, "hints are not sent");
            }
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = tokio::time::sleep(backoff.next_delay()) => {}
            }
        }
    }

    async fn over_one_connection(
        &self,
        database: &Database,
        interval: Duration,
        backoff: &mut Backoff,
    ) -> Result<(), DatabaseError> {
        let session = database.session("hint").await?;
        // A hint that a crash forgets is none to wait for a disk for.
        session
            .batch_execute("set synchronous_commit = off")
            .await?;
        loop {
            self.0.notified().await;
            notify(&session).await?;
            backoff.reset();
            ::metrics::counter!(metrics::HINTS).increment(1);
            tokio::time::sleep(interval).await;
        }
    }
}

async fn notify(session: &Session) -> Result<(), DatabaseError> {
    let sent = session.batch_execute("notify ticketflow_outbox");
    let sent = tokio::time::timeout(TIMEOUT, sent).await;
    sent.map_err(|_| DatabaseError::Deadline(TIMEOUT))??;
    Ok(())
}
