//! Hearing the hint that something was recorded. A dead listener costs latency only, and is noticed
//! by a test of itself.

use std::sync::Arc;
use std::time::Duration;

use runtime::backoff::Backoff;
use runtime::database::{Database, DatabaseError, Session};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::metrics;

/// How often the listener sends itself a notification.
const TEST_EVERY: Duration = Duration::from_secs(10);
/// And how long it waits to hear it.
const HEARD_WITHIN: Duration = Duration::from_secs(2);

/// Listens until stopped, on a connection of its own.
pub(crate) async fn listen(database: Database, hint: Arc<Notify>, stop: CancellationToken) {
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
    let listening = async {
        loop {
            let ended = hear(&database, &hint, &mut backoff).await;
            metrics::hint(false);
            let reason =
                ended.map_or_else(|error| error.to_string(), |()| "it went silent".to_owned());
            tracing::debug!(reason, "hints are not heard; polling goes on");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    };
    stop.run_until_cancelled(listening).await;
}

/// Hears hints until the connection ends or goes silent.
async fn hear(
    database: &Database,
    hint: &Notify,
    backoff: &mut Backoff,
) -> Result<(), DatabaseError> {
    let mut session = database.session("hint").await?;
    outbox::listen(&session).await?;
    // What was recorded before this is found now.
    hint.notify_one();
    let own = format!("self-test-{:016x}", fastrand::u64(..));
    metrics::hint(true);
    backoff.reset();
    let mut test_at = Instant::now() + TEST_EVERY;
    loop {
        match timeout_at(test_at, session.notified()).await {
            Ok(Some(heard)) if heard.payload().is_empty() => hint.notify_one(),
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(_) if !hears_itself(&mut session, hint, &own).await? => return Ok(()),
            Err(_) => test_at = Instant::now() + TEST_EVERY,
        }
    }
}

async fn hears_itself(
    session: &mut Session,
    hint: &Notify,
    own: &str,
) -> Result<bool, DatabaseError> {
    let until = Instant::now() + HEARD_WITHIN;
    let sending = outbox::notify_oneself(session, own);
    match timeout_at(until, sending).await {
        Ok(sent) => sent?,
        Err(_) => return Ok(false),
    }
    loop {
        match timeout_at(until, session.notified()).await {
            Ok(Some(heard)) if heard.payload() == own => return Ok(true),
            Ok(Some(heard)) if heard.payload().is_empty() => hint.notify_one(),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return Ok(false),
        }
    }
}
