//! The process: what is opened in which order, and how it stops.

use std::net::SocketAddr;
use std::sync::Arc;

use broker::{Broker, InvalidAddress};
use outbox::ClaimRequest;
use runtime::admin::{Admin, AdminError};
use runtime::database::{Database, DatabaseError, StartError};
use runtime::readiness::Readiness;
use runtime::supervise::{TaskFailed, Tasks, done};
use tokio::sync::{Mutex, Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;
use topology::{Topology, Verified};

use crate::circuit::Circuits;
use crate::config::{Config, STORE_DEADLINE};
use crate::cycle::Cycle;
use crate::health::Health;
use crate::leases::Leases;
use crate::observe::Observer;
use crate::publishing::Sender;
use crate::scout::{Scout, Turn};
use crate::store::PgStore;
use crate::verify::Queues;
use crate::worker::Worker;
use crate::{hint, housekeeping, metrics};

/// Why the relay ended otherwise than by a stop.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The admin port cannot be opened.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The database cannot be worked with.
    #[error(transparent)]
    Database(#[from] StartError),
    /// The broker's address can never work.
    #[error("the address of the broker is not valid")]
    Broker(#[from] InvalidAddress),
    /// A task failed for good.
    #[error(transparent)]
    Task(#[from] TaskFailed),
}

impl From<DatabaseError> for RelayError {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error.into())
    }
}

/// Relays events until stopped.
///
/// # Errors
/// [`RelayError`] if it cannot start or a part of it fails for good.
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<(), RelayError> {
    let (sender, _) = oneshot::channel();
    run_and_tell(config, shutdown, sender).await
}

/// The same, telling where health and metrics are served once they are.
///
/// # Errors
/// As for [`run`].
pub async fn run_and_tell(
    config: Config,
    shutdown: CancellationToken,
    told: oneshot::Sender<SocketAddr>,
) -> Result<(), RelayError> {
    let readiness = Readiness::default();
    let database_ready = readiness.condition("database");
    let database = Database::open(config.database.clone())?;
    let admin = Admin::serve(config.admin, readiness.clone(), shutdown.clone()).await?;
    metrics::describe();
    // Nobody may be waiting for it.
    let _ = told.send(admin.address());
    match database.ready(&database_ready, &shutdown).await {
        Err(StartError::Stopped) => return Ok(()),
        started => started?,
    }
    let broker = Broker::start(config.broker.clone())?;
    let relay = Relay::new(config, database, broker.clone(), &readiness, shutdown);
    tracing::info!(
        owner = relay.owner,
        workers = relay.config.workers,
        "relaying"
    );
    let grace = relay.config.grace;
    relay.tasks().join(grace).await?;
    broker.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// What the tasks of a process share.
struct Relay {
    config: Config,
    owner: String,
    database: Database,
    broker: Broker,
    topology: Arc<Topology>,
    verified: watch::Sender<Verified>,
    circuits: Arc<Circuits>,
    leases: Leases,
    hint: Arc<Notify>,
    health: Arc<Health>,
    shutdown: CancellationToken,
}

impl Relay {
    fn new(
        config: Config,
        database: Database,
        broker: Broker,
        readiness: &Readiness,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            owner: runtime::start::owner(),
            leases: Leases::new(config.lease),
            health: Arc::new(Health::new(readiness)),
            circuits: Arc::default(),
            topology: Arc::new(Topology::new(database.clone(), broker.clone())),
            verified: watch::Sender::default(),
            hint: Arc::default(),
            config,
            database,
            broker,
            shutdown,
        }
    }

    fn tasks(&self) -> Tasks {
        let mut tasks = Tasks::new(self.shutdown.clone());
        let stop = &self.shutdown;
        let scout = self.scout();
        for _ in 0..self.config.workers {
            let worker = self.worker_maker(&scout);
            tasks.spawn("worker", move || done(worker().work()));
        }
        let (leases, database, stop_1) = (self.leases.clone(), self.database.clone(), stop.clone());
        tasks.spawn("leases", move || {
            done(leases.clone().renew(database.clone(), stop_1.clone()))
        });
        if self.config.hint {
            let (database, hint, stop) = (self.database.clone(), self.hint.clone(), stop.clone());
            tasks.spawn("hint", move || {
                done(hint::listen(database.clone(), hint.clone(), stop.clone()))
            });
        }
        let (topology, verified) = (self.topology.clone(), self.verified.clone());
        let (pools, stop_1) = (self.config.pools.clone(), stop.clone());
        tasks.spawn("topology", move || {
            let keeping = topology::keep(
                topology.clone(),
                pools.clone(),
                verified.clone(),
                stop_1.clone(),
            );
            done(keeping)
        });
        let (observer, stop_1) = (self.observer(), stop.clone());
        tasks.spawn("backlog", move || {
            done(observer.clone().watch_backlog(stop_1.clone()))
        });
        let (observer, stop_1) = (self.observer(), stop.clone());
        tasks.spawn("link", move || {
            done(observer.clone().watch_link(stop_1.clone()))
        });
        let (database, stop, days) = (
            self.database.clone(),
            stop.clone(),
            self.config.retention_days,
        );
        tasks.spawn("partitions", move || {
            done(housekeeping::keep(database.clone(), days, stop.clone()))
        });
        tasks
    }

    fn scout(&self) -> Arc<Scout<PgStore>> {
        let config = &self.config;
        let request = ClaimRequest {
            pools: Some(Vec::new()),
            except: Vec::new(),
            owner: self.owner.clone(),
            lease: config.lease,
            lanes: lanes(config.batch_size),
            events: config.batch_size,
            bytes: config.batch_bytes,
        };
        Arc::new(Scout {
            store: Arc::new(PgStore::new(self.database.clone(), STORE_DEADLINE)),
            circuits: self.circuits.clone(),
            request,
            link: self.broker.state(),
            verified: self.verified.subscribe(),
            hint: self.hint.clone(),
            health: self.health.clone(),
            turn: Mutex::new(Turn::new(config.poll_least, config.poll_most)),
            stop: self.shutdown.clone(),
        })
    }

    /// Makes a worker, and another one if that panicked.
    fn worker_maker(
        &self,
        scout: &Arc<Scout<PgStore>>,
    ) -> impl Fn() -> Worker<PgStore, Broker, Queues> + Send + use<> {
        let (broker, database, scout) = (self.broker.clone(), self.database.clone(), scout.clone());
        let (leases, config, stop) = (
            self.leases.clone(),
            self.config.clone(),
            self.shutdown.clone(),
        );
        move || Worker {
            cycle: Cycle {
                store: scout.store.clone(),
                sender: Sender::new(broker.clone(), config.confirm_timeout),
                verify: Queues {
                    broker: broker.clone(),
                    database: database.clone(),
                },
                circuits: scout.circuits.clone(),
                leases: leases.clone(),
                policy: config.policy,
                stop: stop.clone(),
            },
            scout: scout.clone(),
            settling: None,
        }
    }

    fn observer(&self) -> Observer {
        Observer {
            database: self.database.clone(),
            pools: self.config.pools.clone(),
            link: self.broker.state(),
            verified: self.verified.subscribe(),
            circuits: self.circuits.clone(),
            health: self.health.clone(),
            most_due: self.config.most_due,
        }
    }
}

/// Enough lanes that a wave is large where aggregates are few, and few enough that each has a share.
fn lanes(batch_size: usize) -> usize {
    (batch_size / 8).clamp(1, 256)
}
