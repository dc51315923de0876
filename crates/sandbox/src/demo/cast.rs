//! Who takes part: tenants with keys and pools, and the processes.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use event::PoolName;

use super::story::Story;
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
pub(crate) struct Tenant {
    pub(crate) name: &'static str,
    pub(crate) pool: &'static str,
    pub(crate) key: String,
}

/// Where the processes reach the servers, which may be a proxy.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    pub(crate) database_url: String,
    pub(crate) amqp_url: String,
}

impl Addresses {
    fn variables(&self) -> [(&str, &str); 2] {
        [
            ("DATABASE_URL", &self.database_url),
            ("AMQP_URL", &self.amqp_url),
        ]
    }
}

/// The tenants and the processes, those of a pool with its name.
#[derive(Debug)]
pub(crate) struct Cast {
    addresses: Addresses,
    pub(crate) tenants: Vec<Tenant>,
    pub(crate) http: SocketAddr,
    pub(crate) relays: Vec<(&'static str, Program)>,
    pub(crate) consumers: Vec<(&'static str, Program)>,
    pub(crate) producer: Program,
}

impl Cast {
    /// Makes tables, tenants, keys and queues, and starts all processes.
    pub(crate) async fn gather(
        sandbox: &Sandbox,
        addresses: Addresses,
        story: &Story,
    ) -> anyhow::Result<Self> {
        sandbox.create_database(crate::DATABASE).await?;
        story.say("ticketflow migrate, tenant add, tenant key, topology");
        let tenants = tenants(&addresses.variables()).await?;
        story.say("starting producer, relays and consumers of both pools");
        let [port] = free_ports()?;
        let http = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let producer = producer(sandbox, &addresses, http).await?;
        let mut cast = Self {
            addresses,
            tenants,
            http,
            relays: Vec::new(),
            consumers: Vec::new(),
            producer,
        };
        // Two for the shared pool: when one is killed, the other takes its lanes over.
        for pool in ["shared", "shared", "summit"] {
            cast.add_relay(sandbox, pool).await?;
        }
        for pool in ["shared", "summit"] {
            cast.add_consumer(sandbox, pool).await?;
        }
        Ok(cast)
    }

    /// What the tap has to read along.
    pub(crate) fn tapped(&self) -> anyhow::Result<Vec<TapQueue>> {
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

    /// Starts another relay, in the place of one that was killed.
    pub(crate) async fn add_relay(
        &mut self,
        sandbox: &Sandbox,
        pool: &'static str,
    ) -> anyhow::Result<()> {
        let variables = self.addresses.variables();
        let relay = Program::start(sandbox, "relay", &variables, &["--pool", pool]).await;
        let relay = relay.with_context(|| format!("a relay of the pool {pool}"))?;
        self.relays.push((pool, relay));
        Ok(())
    }

    /// Starts another consumer, in the place of one that was killed.
    pub(crate) async fn add_consumer(
        &mut self,
        sandbox: &Sandbox,
        pool: &'static str,
    ) -> anyhow::Result<()> {
        let variables = self.addresses.variables();
        let arguments = ["--pool", pool, "--name", pool];
        let consumer = Program::start(sandbox, "consumer", &variables, &arguments).await;
        let consumer = consumer.with_context(|| format!("a consumer of the pool {pool}"))?;
        self.consumers.push((pool, consumer));
        Ok(())
    }

    /// Starts the producer again, on the same port.
    pub(crate) async fn renew_producer(&mut self, sandbox: &Sandbox) -> anyhow::Result<()> {
        self.producer = producer(sandbox, &self.addresses, self.http).await?;
        Ok(())
    }

    /// Stops all processes cleanly.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.producer.stop().await?;
        for (_, program) in self.relays.into_iter().chain(self.consumers) {
            program.stop().await?;
        }
        Ok(())
    }
}

async fn producer(
    sandbox: &Sandbox,
    addresses: &Addresses,
    http: SocketAddr,
) -> anyhow::Result<Program> {
    let listen = http.to_string();
    let quiet = ["--listen", &listen, "--access-log=false"];
    Program::start(sandbox, "producer", &addresses.variables(), &quiet)
        .await
        .context("the producer")
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
