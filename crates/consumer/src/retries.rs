//! Tries what waits in rows: deferred, waiting for its order, or suspect.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use inbox::{Due, InboxError, Outcome};
use runtime::backoff::Backoff;

use crate::metrics;
use crate::shared::Shared;

/// Rows looked at together.
const ROWS: i64 = 64;
/// Rows tried at once; suspects always one by one.
const AT_ONCE: usize = 4;
const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(5);

/// Tries rows until the process stops.
pub(crate) async fn run(shared: Arc<Shared>, owner: String) {
    let mut backoff = Backoff::new(BASE, CAP);
    while !shared.stop.is_cancelled() {
        let wait = match round(&shared, &owner).await {
            Ok(0) => {
                backoff.reset();
                shared.config.retry_poll
            }
            Ok(_) => {
                backoff.reset();
                Duration::ZERO
            }
            Err(error) => {
                if backoff.attempt() == 0 {
                    tracing::warn!(%error, "rows cannot be tried; trying again");
                }
                shared.health.database_failed(&error.to_string());
                backoff.next_delay()
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shared.rows.notified(), if wait == shared.config.retry_poll => {}
            () = shared.stop.cancelled() => return,
        }
    }
}

/// One look and a try of each row found. Says how many were decided.
async fn round(shared: &Shared, owner: &str) -> Result<usize, InboxError> {
    let names: Vec<_> = shared
        .effects
        .iter()
        .map(|effect| effect.name().as_str())
        .collect();
    let due = shared.inbox.due(&names, ROWS).await?;
    shared.health.looked();
    let (suspects, others): (Vec<Due>, Vec<Due>) = due.into_iter().partition(|row| row.suspect);
    let mut decided = 0;
    for some in others.chunks(AT_ONCE) {
        let tries: Vec<_> = some.iter().map(|row| tried(shared, row, owner)).collect();
        decided += join_all(tries).await.into_iter().sum::<usize>();
    }
    for row in &suspects {
        if shared.stop.is_cancelled() {
            break;
        }
        decided += tried(shared, row, owner).await;
    }
    Ok(decided)
}

async fn tried(shared: &Shared, row: &Due, owner: &str) -> usize {
    let Some(effect) = shared.effect(&row.effect_name) else {
        return 0;
    };
    let outcome = if row.suspect {
        shared.inbox.try_suspect(effect.as_ref(), row, owner).await
    } else {
        shared.inbox.retry(effect.as_ref(), row).await
    };
    match outcome {
        Ok(Some(outcome)) => {
            metrics::retried(effect.name(), &outcome);
            if let Outcome::Parked(reason) = outcome {
                tracing::error!(
                    delivery.id = row.delivery_id,
                    effect = %effect.name(),
                    %reason,
                    "a delivery is parked"
                );
            }
            1
        }
        Ok(None) => 0,
        Err(error) => {
            tracing::debug!(delivery.id = row.delivery_id, %error, "a row could not be tried");
            0
        }
    }
}
