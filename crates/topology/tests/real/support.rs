//! A site with recorded events, and a look into its queues.

use std::sync::Arc;
use std::time::Duration;

use broker::{BatchLimits, Broker, BrokerError, ConnectOptions, DeclareError, Look, Received};
use event::PoolName;
use runtime::database::{Database, DatabaseConfig};
use sandbox::Site;
use tokio::time::Instant;
use tokio_postgres::Client;
use topology::{Standing, Topology, TopologyError};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) site: Site,
    pub(crate) broker: Broker,
    pub(crate) sql: Client,
    pub(crate) topology: Arc<Topology>,
}

/// Where the three generations of a queue stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generations {
    pub(crate) generation: i64,
    pub(crate) declared: i64,
    pub(crate) ready: i64,
}

impl Stage {
    /// With the default effects in the pool `shared`, except `audit`: it would take everything.
    pub(crate) async fn set(name: &str) -> Self {
        let sandbox = sandbox::shared().await.expect("servers");
        let site = sandbox.site(name).await.expect("a site");
        let broker = Broker::start(ConnectOptions::new(site.amqp_url.clone(), "topology test"));
        let broker = broker.expect("an address");
        broker.connected(PATIENCE).await.expect("a connection");
        let sql = site.database().await.expect("a database");
        let audit = "delete from ticketflow.effect_queues where effect = 'audit'";
        sql.batch_execute(audit).await.expect("two effects");
        let topology = Self::another(&site, &broker);
        Self {
            site,
            broker,
            sql,
            topology,
        }
    }

    /// What a process of its own would use, with the rights of a relay.
    pub(crate) fn another(site: &Site, broker: &Broker) -> Arc<Topology> {
        let mut config = DatabaseConfig::for_url(&site.database_url, "topology test");
        config.role = Some("ticketflow_relay".to_owned());
        let database = Database::open(config).expect("a database");
        Arc::new(Topology::new(database, broker.clone()))
    }

    /// Verifies, again and again while the broker is not available: for a moment after a quorum
    /// queue was deleted it may answer a declare with an internal error, as to any relay.
    pub(crate) async fn verified(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.topology.verify(&shared()).await {
                Err(error) if is_transient(&error) && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                standing => {
                    assert_eq!(standing.expect("verified"), Standing::Verified);
                    return;
                }
            }
        }
    }

    pub(crate) async fn generations(&self, effect: &str) -> Generations {
        let text = "select generation, declared_generation, ready_generation \
                    from ticketflow.effect_queues where pool = 'shared' and effect = $1::text";
        let row = self.sql.query_one(text, &[&effect]).await.expect("a queue");
        Generations {
            generation: row.get(0),
            declared: row.get(1),
            ready: row.get(2),
        }
    }

    /// Records events of a type, one for each of the aggregates, and marks them as published.
    pub(crate) async fn published(&self, event_type: &str, count: i64) {
        let record = "select count(ticketflow.record_event('default', 'ticket', n::text, \
                      $1::text, '{\"a\": 1.10}'::text)) from generate_series(1, $2::bigint) as n";
        self.sql
            .query(record, &[&event_type, &count])
            .await
            .expect("recorded");
        let mark = "update ticketflow.outbox_events set state = 'published', \
                    published_at = clock_timestamp(), pool = 'shared' where state = 'pending'";
        self.sql.execute(mark, &[]).await.expect("published");
    }

    /// The ids of published events, in position order.
    pub(crate) async fn ids(&self, condition: &str) -> Vec<String> {
        let text = format!(
            "select event_id::text from ticketflow.outbox_events as e where {condition} order by position"
        );
        let rows = self.sql.query(text.as_str(), &[]).await.expect("ids");
        rows.iter().map(|row| row.get(0)).collect()
    }

    pub(crate) async fn execute(&self, text: &str) -> u64 {
        self.sql.execute(text, &[]).await.expect("executed")
    }

    pub(crate) async fn waiting(&self, queue: &str) -> u32 {
        match self.broker.look_at(queue).await.expect("a look") {
            Look::Present { messages, .. } => messages,
            Look::Missing => panic!("{queue} is missing"),
        }
    }

    /// Takes so many messages out of a queue, and shows each.
    pub(crate) async fn take(&self, queue: &str, count: usize, mut show: impl FnMut(&Received)) {
        let mut deliveries = self
            .broker
            .deliveries(queue, 500)
            .await
            .expect("subscribed");
        let limits = BatchLimits {
            deliveries: 500,
            bytes: usize::MAX,
            linger: Duration::ZERO,
        };
        let mut taken = 0;
        while taken < count {
            let batch = tokio::time::timeout(PATIENCE, deliveries.batch(limits)).await;
            let batch = batch.expect("in time").expect("a batch");
            batch.deliveries().iter().for_each(&mut show);
            taken += batch.deliveries().len();
            batch.ack().await.expect("acknowledged");
        }
        assert_eq!(taken, count);
    }

    pub(crate) async fn take_ids(&self, queue: &str, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        let note = |received: &Received| ids.extend(received.delivered.message_id.clone());
        self.take(queue, count, note).await;
        ids
    }
}

pub(crate) fn shared() -> PoolName {
    PoolName::parse("shared").expect("valid")
}

pub(crate) const SEARCH: &str = "ticketflow.shared.search";
pub(crate) const NOTIFICATION: &str = "ticketflow.shared.notification";

pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn is_transient(error: &TopologyError) -> bool {
    matches!(
        error,
        TopologyError::Broker(BrokerError::Unavailable(_))
            | TopologyError::Declare(DeclareError::Broker(BrokerError::Unavailable(_)))
    )
}
