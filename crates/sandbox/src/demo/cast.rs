//! Who takes part: tenants with keys and pools, and the processes.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use event::PoolName;
use tokio_postgres::Client;

use super::story::Story;
use crate::database;
use crate::ledger::TapQueue;
use crate::pair::Sandbox;
use crate::ports::free_ports;
use crate::program::{Program, output};

/// The tenants and their pools: two share one, the third has its own.
const TENANTS: [(&str, &str); 3] = [
    ("brook", "shared"),
    ("cliff", "shared"),
    ("summit", "summit"),
];

/// Which events the tap takes: those of the notification effect.
const TAPPED: &str = "ticket.#";

/// No limit that the demo would reach.
const RATE: &str = "1000000";

/// A tenant with its key.
#[derive(Debug, Clone)]
pub(super) struct Tenant {
    pub(super) name: &'static str,
    pub(super) pool: &'static str,
    pub(super) key: String,
}

/// The tenants and the processes.
#[derive(Debug)]
pub(super) struct Cast {
    pub(super) database_url: String,
    pub(super) amqp_url: String,
    pub(super) tenants: Vec<Tenant>,
    pub(super) http: SocketAddr,
    /// With their pools.
    pub(super) relays: Vec<(&'static str, Program)>,
    consumers: Vec<Program>,
    producer: Program,
}

impl Cast {
    /// Makes tables, tenants, keys and queues, and starts all processes.
    pub(super) async fn gather(sandbox: &Sandbox, story: &Story) -> anyhow::Result<Self> {
        sandbox.create_database(crate::DATABASE).await?;
        let database_url = sandbox.database_url(crate::DATABASE);
        let amqp_url = sandbox.amqp_url(crate::VHOST);
        let addresses = [
            ("DATABASE_URL", database_url.as_str()),
            ("AMQP_URL", &amqp_url),
        ];
        story.say("ticketflow migrate, tenant add, tenant key, topology");
        let tenants = tenants(&addresses).await?;
        story.say("starting producer, relays and consumers of both pools");
        let [port] = free_ports()?;
        let http = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listen = http.to_string();
        let quiet = ["--listen", &listen, "--access-log=false"];
        let producer = Program::start(sandbox, "producer", &addresses, &quiet);
        let producer = producer.await.context("the producer")?;
        let mut relays = Vec::new();
        // Two for the shared pool: when one is killed, the other takes its lanes over.
        for pool in ["shared", "shared", "summit"] {
            relays.push((pool, relay(sandbox, &addresses, pool).await?));
        }
        let mut consumers = Vec::new();
        for pool in ["shared", "summit"] {
            let arguments = ["--pool", pool, "--name", pool];
            consumers.push(Program::start(sandbox, "consumer", &addresses, &arguments).await?);
        }
        Ok(Self {
            database_url,
            amqp_url,
            tenants,
            http,
            relays,
            consumers,
            producer,
        })
    }

    /// What the tap has to read along.
    pub(super) fn tapped(&self) -> anyhow::Result<Vec<TapQueue>> {
        let mut pools: Vec<&str> = self.tenants.iter().map(|tenant| tenant.pool).collect();
        pools.dedup();
        let queue = |pool: &str| {
            Ok(TapQueue {
                pool: PoolName::parse(pool)?,
                patterns: vec![TAPPED.to_owned()],
            })
        };
        pools.into_iter().map(queue).collect()
    }

    pub(super) async fn database(&self) -> anyhow::Result<Client> {
        database::connect(&self.database_url)
            .await
            .context("connect to the database")
    }

    /// Starts another relay, in the place of one that was killed.
    pub(super) async fn add_relay(
        &mut self,
        sandbox: &Sandbox,
        pool: &'static str,
    ) -> anyhow::Result<()> {
        let addresses = [
            ("DATABASE_URL", self.database_url.as_str()),
            ("AMQP_URL", &self.amqp_url),
        ];
        let relay = relay(sandbox, &addresses, pool).await?;
        self.relays.push((pool, relay));
        Ok(())
    }

    /// Stops all processes cleanly.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.producer.stop().await?;
        for (_, relay) in self.relays {
            relay.stop().await?;
        }
        for consumer in self.consumers {
            consumer.stop().await?;
        }
        Ok(())
    }
}

async fn relay(
    sandbox: &Sandbox,
    addresses: &[(&str, &str)],
    pool: &str,
) -> anyhow::Result<Program> {
    let relay = Program::start(sandbox, "relay", addresses, &["--pool", pool]).await;
    relay.with_context(|| format!("a relay of the pool {pool}"))
}

async fn tenants(addresses: &[(&str, &str)]) -> anyhow::Result<Vec<Tenant>> {
    output("ticketflow", addresses, &["migrate"]).await?;
    let mut tenants = Vec::new();
    for (name, pool) in TENANTS {
        let add = [
            "tenant", "add", name, "--pool", pool, "--rate", RATE, "--burst", RATE,
        ];
        output("ticketflow", addresses, &add).await?;
        let key = output("ticketflow", addresses, &["tenant", "key", name]).await?;
        tenants.push(Tenant {
            name,
            pool,
            key: key.trim().to_owned(),
        });
    }
    output("ticketflow", addresses, &["topology"]).await?;
    Ok(tenants)
}
