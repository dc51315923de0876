//! The delivery loop as a whole: a supervised worker for each endpoint, and the gauges.

use std::sync::Arc;
use std::time::Duration;

use runtime::database::Database;
use runtime::measure;
use runtime::readiness::Readiness;
use runtime::supervise::{TaskFailed, Tasks};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::cycle::Cycle;
use crate::{gauges, measures, worker};

/// Without a cycle for so long it is not ready: a claim's deadline, and some.
const PROGRESS: Duration = Duration::from_secs(30);
/// Kept of the grace for the last settle.
const TO_SETTLE: Duration = Duration::from_secs(2);

/// Sends tasks until stopped, then waits for the requests under way, at most `config.grace`.
///
/// # Errors
/// [`TaskFailed`] if a part of it failed again and again; the process should end non-zero.
pub async fn run(
    config: Config,
    database: Database,
    readiness: Readiness,
    shutdown: CancellationToken,
) -> Result<(), TaskFailed> {
    measure::describe(measures::METRICS);
    let config = Arc::new(config);
    let mut tasks = Tasks::new(shutdown.clone());
    let answered_by = config.grace.saturating_sub(TO_SETTLE).max(config.grace / 2);
    if config.endpoints.is_empty() {
        return Ok(());
    }
    // One for all: an endpoint that fails is not this process's fault, only a cycle that does is.
    let condition = readiness.progress("outside", PROGRESS);
    for endpoint in &config.endpoints {
        tracing::info!(endpoint = %endpoint.name, "outside tasks are sent");
        let (endpoint, config) = (endpoint.clone(), Arc::clone(&config));
        let (database, shutdown) = (database.clone(), shutdown.clone());
        let condition = condition.clone();
        tasks.spawn("outside", move || {
            let cycle = Cycle::new(endpoint.clone(), Arc::clone(&config), database.clone());
            let (condition, shutdown) = (condition.clone(), shutdown.clone());
            worker::run(cycle, config.idle_poll, answered_by, condition, shutdown)
        });
    }
    tasks.spawn("outside gauges", move || {
        gauges::keep(database.clone(), shutdown.clone())
    });
    tasks.join(config.grace).await
}
