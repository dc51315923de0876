//! What tests of the relay stand on: a site with a pool's queues, events recorded by SQL, relays run
//! in this process, and what is on the wire.

use std::collections::HashMap;
use std::time::Duration;

use broker::{BatchLimits, Broker, ConnectOptions, EffectQueue};
use event::{EffectName, Event, PoolName};
use runtime::settings::{Invocation, Sources};
use sandbox::Site;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use tokio_util::sync::CancellationToken;

/// Generous: reached only when something is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A site, a superuser's session in it, and a link to its broker.
pub(crate) struct Rig {
    pub(crate) site: Site,
    pub(crate) database: Client,
    pub(crate) broker: Broker,
}

impl Rig {
    /// A site of the servers that all tests share.
    pub(crate) async fn start(name: &str) -> Self {
        let sandbox = sandbox::shared().await.expect("servers");
        let site = sandbox.site(name).await.expect("a site");
        Self::on(site).await
    }

    pub(crate) async fn on(site: Site) -> Self {
        log();
        let database = site.database().await.expect("a session");
        database
            .batch_execute("delete from ticketflow.effect_queues")
            .await
            .expect("no queues");
        let broker =
            Broker::start(ConnectOptions::new(site.amqp_url.clone(), "test")).expect("a URL");
        broker.connected(PATIENCE).await.expect("a link");
        Self {
            site,
            database,
            broker,
        }
    }

    /// Declares a queue in the pool `shared` and says that it is ready.
    pub(crate) async fn queue(&self, effect: &str, patterns: &[&str]) {
        self.queue_of("shared", effect, patterns).await;
    }

    pub(crate) async fn queue_of(&self, pool: &str, effect: &str, patterns: &[&str]) {
        let pool = PoolName::parse(pool).expect("a pool");
        let effect = EffectName::parse(effect).expect("an effect");
        self.broker.declare_exchanges().await.expect("exchanges");
        let effects = std::slice::from_ref(&effect);
        self.broker
            .declare_dead_queue(&pool, effects)
            .await
            .expect("a dead queue");
        let queue = EffectQueue {
            pool,
            effect,
            patterns: patterns
                .iter()
                .map(|pattern| (*pattern).to_owned())
                .collect(),
        };
        self.broker
            .declare_effect_queue(&queue)
            .await
            .expect("a queue");
        self.execute(
            "insert into ticketflow.effect_queues \
             (pool, effect, event_types, declared_generation, ready_generation) \
             values ($1::text, $2::text, $3, 1, 1)",
            &[
                &queue.pool.as_str(),
                &queue.effect.as_str(),
                &queue.patterns,
            ],
        )
        .await;
    }

    pub(crate) async fn execute(&self, text: &str, values: &[&(dyn ToSql + Sync)]) -> u64 {
        self.database.execute(text, values).await.expect(text)
    }

    /// The one value that a query answers.
    pub(crate) async fn count(&self, text: &str) -> i64 {
        self.database.query_one(text, &[]).await.expect(text).get(0)
    }

    /// Records `versions` events of each of `aggregates` tickets of the tenant `default`.
    pub(crate) async fn record(&self, aggregates: i32, versions: i32) {
        self.execute(
            "select ticketflow.record_event('default', 'ticket', 'a' || aggregate, 'ticket.updated', \
               convert_to(format('{\"n\":%s}', version), 'UTF8')) \
             from generate_series(1, $2) as version, generate_series(1, $1) as aggregate",
            &[&aggregates, &versions],
        )
        .await;
    }

    /// Waits until a query answers `expected`.
    pub(crate) async fn until(&self, text: &str, expected: i64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.count(text).await;
            if found == expected {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{text}: {found} instead of {expected}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until a query answers at least `least`.
    pub(crate) async fn until_at_least(&self, text: &str, least: i64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.count(text).await;
            if found >= least {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{text}: {found}, less than {least}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until so many events are published and none is pending.
    pub(crate) async fn until_published(&self, expected: i64) {
        self.until(PUBLISHED, expected).await;
        self.until(
            "select count(*) from ticketflow.outbox_events where state = 'pending'",
            0,
        )
        .await;
    }

    /// The relay's configuration with these flags.
    pub(crate) fn config(&self, flags: &[&str]) -> relay::Config {
        config(&self.site.database_url, &self.site.amqp_url, flags)
    }

    /// Runs a relay in this process.
    pub(crate) fn relay(&self, flags: &[&str]) -> Running {
        Running::start(self.config(flags))
    }

    /// Everything in a queue, in its order, acknowledged.
    pub(crate) async fn wire(&self, queue: &str) -> Vec<Event> {
        wire(&self.broker, queue).await
    }
}

/// Everything in a queue, in its order, acknowledged.
pub(crate) async fn wire(broker: &Broker, queue: &str) -> Vec<Event> {
    let mut deliveries = broker.deliveries(queue, 500).await.expect("a queue");
    let limits = BatchLimits {
        deliveries: 500,
        bytes: usize::MAX,
        linger: Duration::from_millis(100),
    };
    let mut events = Vec::new();
    // A queue that stays silent for so long is empty.
    let silence = Duration::from_secs(6);
    while let Ok(batch) = tokio::time::timeout(silence, deliveries.batch(limits)).await {
        let batch = batch.expect("deliveries");
        let read = batch
            .deliveries()
            .iter()
            .map(|one| one.delivered.read().expect("an event"));
        events.extend(read);
        batch.ack().await.expect("acknowledged");
    }
    events
}

/// Logs to stderr what `TICKETFLOW_TEST_LOG` asks for, to look into a failure.
pub(crate) fn log() {
    if let Ok(filter) = std::env::var("TICKETFLOW_TEST_LOG") {
        let subscriber = tracing_subscriber::fmt().with_env_filter(filter);
        // Another test may have been first.
        let _ = subscriber.with_writer(std::io::stderr).try_init();
    }
}

pub(crate) const PUBLISHED: &str =
    "select count(*) from ticketflow.outbox_events where state = 'published'";

pub(crate) fn config(database_url: &str, amqp_url: &str, flags: &[&str]) -> relay::Config {
    let urls = [("DATABASE_URL", database_url), ("AMQP_URL", amqp_url)];
    let with_admin = [&["--admin", "127.0.0.1:0"], flags].concat();
    match relay::PROCESS.read(&Sources::of(&with_admin, &urls)) {
        Ok(Invocation::Run(settings)) => relay::Config::from_settings(&settings).expect("settings"),
        Ok(Invocation::Say(text)) => panic!("{text}"),
        Err(problems) => panic!("{problems}"),
    }
}

/// A relay that runs in this process.
pub(crate) struct Running {
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), relay::RelayError>>,
}

impl Running {
    pub(crate) fn start(config: relay::Config) -> Self {
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(relay::run(config, shutdown.clone()));
        Self { shutdown, task }
    }

    /// Ends it at once, wherever it is: nothing is settled or given back.
    pub(crate) fn kill(self) {
        self.task.abort();
    }

    /// Stops it as SIGTERM does.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        let stopped = tokio::time::timeout(PATIENCE, self.task).await;
        stopped
            .expect("it stops in time")
            .expect("no panic")
            .expect("a clean stop");
    }
}

/// Panics unless the first arrivals of each aggregate came in the order of their versions, each
/// naming the one before.
pub(crate) fn assert_first_arrivals_in_order(events: &[Event]) {
    let mut heads: HashMap<_, i64> = HashMap::new();
    for event in events {
        let Some(version) = event.version else {
            continue;
        };
        let aggregate = (&event.identity.tenant_id, &event.aggregate);
        let head = heads.entry(aggregate).or_default();
        if version > *head {
            assert_eq!(
                event.previous_version,
                Some(*head),
                "{event:?} came before its predecessor"
            );
            *head = version;
        }
    }
}
