//! The process: what is opened in which order, and how it stops.

use std::net::SocketAddr;
use std::sync::Arc;

use broker::{Broker, InvalidAddress};
use event::{PoolName, dead_queue_name, queue_name};
use inbox::{Effect, Inbox};
use runtime::admin::{Admin, AdminError};
use runtime::database::{Database, DatabaseError, StartError};
use runtime::readiness::Readiness;
use runtime::supervise::{TaskFailed, Tasks, done};
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;
use topology::{Topology, Verified};

use crate::config::Config;
use crate::cycle::{Cycle, Work};
use crate::health::{Channel, Health};
use crate::marks::Mark;
use crate::pauses::{self, Paused};
use crate::prefetch::Ladder;
use crate::prepare::{PrepareError, Prepared, prepare};
use crate::shared::Shared;
use crate::subscription::Subscription;
use crate::{effects, housekeeping, metrics, retries};

/// Why the consumer ended otherwise than by a stop.
#[derive(Debug, thiserror::Error)]
pub enum ConsumerError {
    /// The dedup window is too short.
    #[error("{0}")]
    Window(String),
    /// An effect of this name is not known.
    #[error("there is no effect {0}")]
    Effect(String),
    /// The admin port cannot be opened.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The database cannot be worked with.
    #[error(transparent)]
    Database(#[from] StartError),
    /// The database refuses what a start needs.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The broker's address can never work.
    #[error("the address of the broker is not valid")]
    Broker(#[from] InvalidAddress),
    /// A task failed for good.
    #[error(transparent)]
    Task(#[from] TaskFailed),
}

impl From<DatabaseError> for ConsumerError {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error.into())
    }
}

/// Consumes until stopped.
///
/// # Errors
/// [`ConsumerError`] if it cannot start or a part of it fails for good.
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<(), ConsumerError> {
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
) -> Result<(), ConsumerError> {
    let mut effects = Vec::new();
    for name in &config.effects {
        let known = effects::by_name(name);
        effects.push(known.ok_or_else(|| ConsumerError::Effect(name.clone()))?);
    }
    run_effects(config, effects, shutdown, told).await
}

/// The same with effects of the caller's own, each consumed from its own queue.
///
/// # Errors
/// As for [`run`].
pub async fn run_effects(
    config: Config,
    effects: Vec<Arc<dyn Effect>>,
    shutdown: CancellationToken,
    told: oneshot::Sender<SocketAddr>,
) -> Result<(), ConsumerError> {
    config.window.check().map_err(ConsumerError::Window)?;
    let readiness = Readiness::default();
    let database_ready = readiness.condition("database");
    let health = Health::new(&readiness, database_ready.clone());
    let database = Database::open(config.database.clone())?;
    let admin = Admin::serve(config.admin, readiness.clone(), shutdown.clone()).await?;
    metrics::describe(effects.iter().map(|effect| effect.name()));
    // Nobody may be waiting for it.
    let _ = told.send(admin.address());
    match database.ready(&database_ready, &shutdown).await {
        Err(StartError::Stopped) => return Ok(()),
        started => started?,
    }
    let inbox = Inbox::new(database.pool().clone(), config.policy.clone());
    let mark = Mark::new();
    let prepared = prepare((&database, &inbox), &config, mark, &shutdown).await?;
    let Some(Prepared { careful, paused }) = prepared else {
        return Ok(());
    };
    let broker = Broker::start(config.broker.clone())?;
    // On a link of its own: one that publishes may be blocked, and acknowledgements with it.
    let queues = Topology::new(database.clone(), Broker::start(config.broker.clone())?);
    let (pausing, paused) = watch::channel(paused);
    let shared = Arc::new(Shared {
        inbox,
        health,
        rows: Notify::new(),
        stop: shutdown,
        config,
        effects,
        database,
        broker,
        paused,
        careful,
    });
    tracing::info!(
        name = shared.config.name,
        pools = ?shared.config.pools,
        careful,
        "consuming"
    );
    let grace = shared.config.grace;
    let mut tasks = tasks(&shared, readiness, pausing, mark);
    keep_queues(&mut tasks, &shared, queues);
    tasks.join(grace).await?;
    if let Err(error) = mark.clear(&shared.database).await {
        tracing::warn!(%error, "the mark of this process stays: the next start is a careful one");
    }
    shared.broker.clone().close().await;
    tracing::info!("stopped");
    Ok(())
}

fn tasks(
    shared: &Arc<Shared>,
    readiness: Readiness,
    pausing: watch::Sender<Paused>,
    mark: Mark,
) -> Tasks {
    let mut tasks = Tasks::new(shared.stop.clone());
    for pool in &shared.config.pools {
        for effect in &shared.effects {
            // Two batches of an effect that keeps order would mostly wait for each other.
            let channels = match effect.keeps_order() {
                true => 1,
                false => shared.config.channels,
            };
            let queue = queue_name(pool, effect.name());
            for number in 1..=channels {
                let channel = Channel::new(&queue, number);
                let work = Work::Effect(effect.clone());
                subscribe(&mut tasks, shared, pool, channel, &work);
            }
        }
        let channel = Channel::new(&dead_queue_name(pool), 1);
        subscribe(&mut tasks, shared, pool, channel, &Work::Dead);
    }
    let (own, owner) = (shared.clone(), runtime::start::owner());
    tasks.spawn("rows", move || {
        done(retries::run(own.clone(), owner.clone()))
    });
    let own = shared.clone();
    tasks.spawn("pauses", move || {
        done(pauses::watch(own.clone(), pausing.clone()))
    });
    let own = shared.clone();
    tasks.spawn("housekeeping", move || {
        done(housekeeping::run(own.clone(), mark))
    });
    let own = shared.clone();
    tasks.spawn("outside", move || {
        let (outside, database) = (own.config.outside.clone(), own.database.clone());
        outside::run(outside, database, readiness.clone(), own.stop.clone())
    });
    tasks
}

/// Looks after the queues of the pools: what is missing is made, and gets what it missed.
fn keep_queues(tasks: &mut Tasks, shared: &Shared, queues: Topology) {
    let (queues, pools) = (Arc::new(queues), shared.config.pools.clone());
    let stop = shared.stop.clone();
    tasks.spawn("queues", move || {
        let (verified, _) = watch::channel(Verified::default());
        let pools = Some(pools.clone());
        done(topology::keep(
            queues.clone(),
            pools,
            verified,
            stop.clone(),
        ))
    });
}

/// Starts the task of a channel; another one after a panic, which is as careful as after a kill.
fn subscribe(
    tasks: &mut Tasks,
    shared: &Arc<Shared>,
    pool: &PoolName,
    channel: Channel,
    work: &Work,
) {
    let pool = pool.clone();
    let (shared, work) = (shared.clone(), work.clone());
    let mut careful = shared.careful;
    shared.health.unsubscribed(&channel, "not yet subscribed");
    tasks.spawn("subscription", move || {
        let subscription = Subscription {
            ladder: Ladder::new(shared.config.prefetch, careful),
            cycle: Cycle {
                shared: shared.clone(),
                pool: pool.clone(),
                queue: channel.queue.clone(),
                channel: channel.clone(),
                work: work.clone(),
            },
        };
        careful = true;
        done(subscription.run())
    });
}
