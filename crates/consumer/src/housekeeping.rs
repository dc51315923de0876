//! What is done beside the deliveries: partitions, retention, gauges read from the database, the
//! process's mark. Two processes at once do no harm.

use std::sync::Arc;
use std::time::Duration;

use runtime::database::{DatabaseError, Transaction};

use crate::marks::Mark;
use crate::metrics;
use crate::shared::Shared;

const LOOK: Duration = Duration::from_secs(5);
/// Partitions and retention, counted in looks.
const KEEP: u32 = 60;
const DEADLINE: Duration = Duration::from_secs(10);

/// Runs until the process stops.
pub(crate) async fn run(shared: Arc<Shared>, mark: Mark) {
    let mut looks = 0_u32;
    loop {
        if looks.is_multiple_of(KEEP) {
            keep(&shared).await;
        }
        looks = looks.wrapping_add(1);
        if let Err(error) = look(&shared).await {
            tracing::debug!(%error, "gauges not read");
        }
        if let Err(error) = mark.keep(&shared.database).await {
            tracing::debug!(%error, "mark not kept");
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = shared.stop.cancelled() => return,
        }
    }
}

async fn keep(shared: &Shared) {
    match shared.inbox.make_partitions().await {
        Ok(0) => {}
        Ok(made) => tracing::info!(made, "partitions of receipts made"),
        Err(error) => tracing::warn!(%error, "partitions of receipts not made"),
    }
    if !shared.config.retention {
        return;
    }
    match shared.inbox.retain(shared.config.window.kept).await {
        Ok(done) if done.emptied + done.dropped + done.skipped == 0 => {}
        Ok(done) => tracing::info!(
            emptied = done.emptied,
            dropped = done.dropped,
            skipped = done.skipped,
            "receipts older than the dedup window removed"
        ),
        Err(error) => tracing::warn!(%error, "old receipts not removed"),
    }
}

async fn look(shared: &Shared) -> Result<(), DatabaseError> {
    let work = async |transaction: &Transaction<'_>| {
        let rows = transaction
            .query(include_str!("sql/gauges.sql"), &[])
            .await?;
        let mut counts = [0; metrics::STATES.len()];
        for row in &rows {
            let state: &str = row.try_get("state")?;
            let place = metrics::STATES.iter().position(|known| *known == state);
            if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
                *count = row.try_get("rows")?;
            }
        }
        let row = transaction
            .query_one(include_str!("sql/gauge_times.sql"), &[])
            .await?;
        metrics::oldest_due(row.try_get("oldest_due")?);
        metrics::window(row.try_get("window")?);
        metrics::partitions_ahead(row.try_get("ahead")?);
        Ok::<_, DatabaseError>(counts)
    };
    let counts = shared.database.transaction(DEADLINE, work).await?;
    for (state, count) in metrics::STATES.into_iter().zip(counts) {
        metrics::rows(state, count);
    }
    Ok(())
}
