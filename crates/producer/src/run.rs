//! The process: what is opened in which order, and how it stops.

use std::net::SocketAddr;
use std::sync::Arc;

use runtime::admin::{Admin, AdminError};
use runtime::database::{Database, DatabaseError, StartError};
use runtime::readiness::Readiness;
use runtime::supervise::{TaskFailed, Tasks};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::hint::Hint;
use crate::house;
use crate::http::{self, Shared};
use crate::keys::Keys;
use crate::metrics::METRICS;
use crate::rates::{Rates, Slots};
use crate::server::{ListenError, Server};
use crate::store::Store;

/// Why the producer ended otherwise than by a stop.
#[derive(Debug, thiserror::Error)]
pub enum ProducerError {
    /// The port for tickets cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The admin port cannot be opened.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The database cannot be worked with.
    #[error(transparent)]
    Database(#[from] StartError),
    /// A task failed for good.
    #[error(transparent)]
    Task(#[from] TaskFailed),
}

impl From<DatabaseError> for ProducerError {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error.into())
    }
}

/// Where a running producer answers, with the ports that were picked.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// Tickets.
    pub http: SocketAddr,
    /// Health and metrics.
    pub admin: SocketAddr,
}

/// Serves tickets until stopped.
///
/// # Errors
/// [`ProducerError`] if it cannot start or a part of it fails for good.
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<(), ProducerError> {
    let (sender, _) = oneshot::channel();
    run_and_tell(config, shutdown, sender).await
}

/// The same, telling where it answers once it does; for ports that are picked.
///
/// # Errors
/// As for [`run`].
pub async fn run_and_tell(
    config: Config,
    shutdown: CancellationToken,
    told: oneshot::Sender<Addresses>,
) -> Result<(), ProducerError> {
    let readiness = Readiness::default();
    let condition = readiness.progress("database", house::PROBE_VALID_FOR);
    let database = Database::open(config.database.clone())?;
    let server = Server::bind(config.listen, config.limits.clone()).await?;
    let admin = Admin::serve(config.admin, readiness, shutdown.clone()).await?;
    runtime::measure::describe(METRICS);
    match database.ready(&condition, &shutdown).await {
        Err(StartError::Stopped) => return Ok(()),
        started => started?,
    }
    let http = server.address().map_err(|source| ListenError::Bind {
        address: config.listen,
        source,
    })?;
    tracing::info!(address = %http, "serving tickets");
    // Nobody may be waiting for it.
    let _ = told.send(Addresses {
        http,
        admin: admin.address(),
    });
    let hint = Hint::default();
    let tasks = tasks(&config, &database, condition, &hint, &shutdown);
    let grace = config.grace;
    let router = http::router(Arc::new(shared(config, database, hint)));
    server.serve(router, shutdown.clone(), grace).await;
    tasks.join(grace).await?;
    tracing::info!("stopped");
    Ok(())
}

fn tasks(
    config: &Config,
    database: &Database,
    condition: runtime::readiness::Condition,
    hint: &Hint,
    shutdown: &CancellationToken,
) -> Tasks {
    let mut tasks = Tasks::new(shutdown.clone());
    let retention = config.idempotency_retention;
    let (own, stop) = (database.clone(), shutdown.clone());
    tasks.spawn("probe", move || {
        house::probe(own.clone(), condition.clone(), stop.clone())
    });
    let (own, stop) = (database.clone(), shutdown.clone());
    tasks.spawn("forget", move || {
        house::forget_keys(own.clone(), retention, stop.clone())
    });
    if let Some(interval) = config.hint_interval {
        let (hint, own, stop) = (hint.clone(), database.clone(), shutdown.clone());
        tasks.spawn("hint", move || {
            hint.clone().send(own.clone(), interval, stop.clone())
        });
    }
    tasks
}

fn shared(config: Config, database: Database, hint: Hint) -> Shared {
    let limits = &config.limits;
    let within = limits.request_timeout;
    Shared {
        keys: Keys::new(database.clone(), within, limits.key_cache),
        rates: Rates::new(limits.rate_per_second, limits.rate_burst),
        slots: Slots::new(limits.max_in_flight, limits.max_in_flight_per_tenant),
        store: Store::new(database, within),
        hint,
        config,
    }
}
