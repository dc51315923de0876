//! When a cycle runs: at once after an answer, soon after work, seldom when nothing is due.

use std::convert::Infallible;
use std::time::Duration;

use runtime::backoff::Backoff;
use runtime::readiness::Condition;
use tokio_util::sync::CancellationToken;

use crate::cycle::{Cycle, Progress};

/// The wait after a cycle that had something to do; it doubles while there is nothing.
const SOON: Duration = Duration::from_millis(5);
/// The longest wait while the database is away.
const AWAY: Duration = Duration::from_secs(5);

/// Runs cycles until stopped, then waits for what is under way.
pub(crate) async fn run(
    mut cycle: Cycle,
    idle_poll: Duration,
    grace: Duration,
    condition: Condition,
    shutdown: CancellationToken,
) -> Result<(), Infallible> {
    let mut away = Backoff::new(SOON, AWAY);
    let mut wait = SOON;
    while !shutdown.is_cancelled() {
        match cycle.turn().await {
            Ok(progress) => {
                away.reset();
                condition.holds();
                wait = match progress {
                    Progress::Some => SOON,
                    Progress::Nothing => idle_poll.min(wait * 2),
                };
            }
            Err(error) => {
                wait = away.next_delay();
                tracing::warn!(%error, ?wait, "outside tasks wait for the database");
                condition.fails(error.to_string());
            }
        }
        // A stop comes first; an answer is settled before anything new is looked for.
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            () = cycle.ended(), if away.attempt() == 0 => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    if let Err(error) = cycle.drain(grace).await {
        // Their leases end by themselves, and whoever claims them then asks first.
        tracing::warn!(%error, "stopped without writing down what became of the last requests");
    }
    Ok(())
}
