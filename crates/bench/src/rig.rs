//! The ground of a bench: servers of its own, the queues it needs, one session as superuser.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use broker::{Broker, ConnectOptions, EffectQueue};
use event::{EffectName, PoolName};
use sandbox::{Sandbox, SandboxOptions, Site};
use tokio_postgres::Client;

use crate::report::Report;

/// How long servers may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Servers, a migrated database, a virtual host.
#[derive(Debug)]
pub struct Rig {
    /// The servers.
    pub sandbox: Arc<Sandbox>,
    /// The database and virtual host in them.
    pub site: Site,
    /// A superuser's session.
    pub database: Client,
    /// A connection to the virtual host.
    pub broker: Broker,
    /// Where the processes' binaries are.
    pub binaries: PathBuf,
    /// Draws everything that is drawn.
    pub seed: u64,
}

impl Rig {
    /// Starts servers with `fsync` on.
    ///
    /// # Errors
    /// What the servers say.
    pub async fn start(name: &str, seed: u64) -> anyhow::Result<Self> {
        let options = SandboxOptions {
            // Tells when an effect was committed, in the server's own time.
            postgres_settings: vec![("track_commit_timestamp".to_owned(), "on".to_owned())],
            ..SandboxOptions::default()
        };
        let sandbox = Arc::new(Sandbox::start(options).await.context("start servers")?);
        let site = sandbox
            .site(name)
            .await
            .context("make a database and a vhost")?;
        let database = site.database().await?;
        // What a bench asks beside a measurement should use indexes whatever the statistics say.
        database
            .batch_execute("set enable_seqscan = off; set jit = off")
            .await?;
        let broker = Broker::start(ConnectOptions::new(site.amqp_url.clone(), "bench"))?;
        broker.connected(PATIENCE).await?;
        let own = std::env::current_exe().context("find the bench's own binary")?;
        let binaries = own.parent().context("find the binaries")?.to_owned();
        Ok(Self {
            sandbox,
            site,
            database,
            broker,
            binaries,
            seed,
        })
    }

    /// Makes exactly these effects' queues in the pool `shared`, ready to be published to.
    ///
    /// # Errors
    /// What the servers say.
    pub async fn make_queues(&self, effects: &[(&str, &str)]) -> anyhow::Result<()> {
        let pool = PoolName::parse("shared")?;
        let names = effects.iter().map(|(effect, _)| EffectName::parse(effect));
        let names: Vec<EffectName> = names.collect::<Result<_, _>>()?;
        self.broker.declare_exchanges().await?;
        self.broker.declare_dead_queue(&pool, &names).await?;
        self.database
            .execute("delete from ticketflow.effect_queues", &[])
            .await?;
        for (effect, (_, pattern)) in names.into_iter().zip(effects) {
            let queue = EffectQueue {
                pool: pool.clone(),
                effect: effect.clone(),
                patterns: vec![(*pattern).to_owned()],
            };
            self.broker.declare_effect_queue(&queue).await?;
            let statement = include_str!("sql/add_queue.sql");
            self.database
                .execute(statement, &[&effect.as_str(), &queue.patterns])
                .await?;
        }
        Ok(())
    }

    /// Throws away what is in a queue.
    ///
    /// # Errors
    /// What the broker says.
    pub async fn purge(&self, queue: &str) -> anyhow::Result<()> {
        let vhost = &self.site.name;
        let purge = format!(
            "{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"{vhost}\">>, queue, \
             <<\"{queue}\">>)), {{ok, _}} = rabbit_amqqueue:purge(Q), \"\""
        );
        self.sandbox
            .evaluate(&purge)
            .await
            .context("purge a queue")?;
        Ok(())
    }

    /// The CPU time RabbitMQ has used.
    ///
    /// # Errors
    /// What the broker says.
    pub async fn broker_cpu(&self) -> anyhow::Result<Duration> {
        let question = "integer_to_list(element(1, erlang:statistics(runtime)))";
        let milliseconds = self.sandbox.evaluate(question).await?;
        Ok(Duration::from_millis(milliseconds.trim().parse()?))
    }

    /// Says on what this is measured.
    ///
    /// # Errors
    /// What the servers say.
    pub async fn describe(&self, report: &mut Report) -> anyhow::Result<()> {
        let settings = "select current_setting('server_version'), current_setting('fsync')";
        let row = self.database.query_one(settings, &[]).await?;
        let (postgresql, fsync): (String, String) = (row.get(0), row.get(1));
        let rabbitmq = self.sandbox.evaluate("rabbit_misc:version()").await?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let postgresql = postgresql.split(' ').next().unwrap_or_default().to_owned();
        report.note(format!(
            "PostgreSQL {postgresql} (fsync {fsync}), RabbitMQ {rabbitmq} (quorum queues), \
             {cores} cores, seed {}",
            self.seed
        ));
        report.fact("postgresql", postgresql);
        report.fact("rabbitmq", rabbitmq.trim());
        report.fact("fsync", fsync == "on");
        report.fact("cores", cores);
        report.fact("seed", self.seed);
        Ok(())
    }
}
