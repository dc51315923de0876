//! A database with tasks in it, and a loop that sends them to where a test says.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outside::provider::{Secrets, Target, Webhook};
use outside::{Config, Endpoint, Policy, Provider, Tenants};
use runtime::database::{Database, DatabaseConfig};
use runtime::readiness::Readiness;
use runtime::supervise::TaskFailed;
use sandbox::{Receiver, Reply, Request, Site};
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const PAYLOAD: &[u8] = br#"{"z":1.10,"path":"C:\\temp"}"#;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) site: Site,
    pub(crate) client: Client,
    pub(crate) database: Database,
}

/// A loop that runs.
pub(crate) struct Running {
    pub(crate) shutdown: CancellationToken,
    pub(crate) readiness: Readiness,
    handle: JoinHandle<Result<(), TaskFailed>>,
}

impl World {
    pub(crate) async fn new(name: &str) -> Self {
        let sandbox = sandbox::shared().await.unwrap();
        let site = sandbox.site(name).await.unwrap();
        let client = site.database().await.unwrap();
        let database = consumer_database(&site.database_url);
        Self {
            site,
            client,
            database,
        }
    }

    /// Writes `count` tasks of a tenant down as the notification effect would.
    pub(crate) async fn tasks(&self, tenant: &str, count: usize) -> BTreeSet<String> {
        let add =
            "insert into ticketflow.tenants (tenant_id) values ($1::text) on conflict do nothing";
        self.client.execute(add, &[&tenant]).await.unwrap();
        let mut tasks = Vec::new();
        let ticket = Uuid::now_v7();
        let add = "insert into ticketflow.tickets (tenant_id, ticket_id, version, subject)
                   values ($1::text, $2, 1, 'Printer on fire')";
        self.client.execute(add, &[&tenant, &ticket]).await.unwrap();
        for _ in 0..count {
            tasks.push(Uuid::now_v7());
        }
        let add = "insert into ticketflow.business_tasks
                     (task_id, tenant_id, ticket_id, event_id, source, task_type, payload)
                   select t, $2::text, $3::uuid, ticketflow.uuid_v7(), 'ticketflow', 'ticket.created', $4::bytea
                   from unnest($1::uuid[]) as t";
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&tasks, &tenant, &ticket, &PAYLOAD];
        self.client.execute(add, &values).await.unwrap();
        tasks.iter().map(Uuid::to_string).collect()
    }

    pub(crate) fn run(&self, config: Config) -> Running {
        run(self.database.clone(), config)
    }

    /// How many tasks have this status.
    pub(crate) async fn count(&self, status: &str) -> i64 {
        let count = "select count(*) from ticketflow.business_tasks where status = $1";
        let row = self.client.query_one(count, &[&status]).await.unwrap();
        row.get(0)
    }

    /// Waits until all tasks have this status.
    pub(crate) async fn until_all(&self, status: &str) {
        let others = "select count(*) from ticketflow.business_tasks where status <> $1";
        until(&format!("all are {status}"), async || {
            let row = self.client.query_one(others, &[&status]).await.unwrap();
            row.get::<_, i64>(0) == 0
        })
        .await;
    }

    /// Waits until so many tasks have this status.
    pub(crate) async fn until_count(&self, status: &str, count: i64) {
        until(&format!("{count} are {status}"), async || {
            self.count(status).await == count
        })
        .await;
    }

    /// One value of the only task, as text.
    pub(crate) async fn only(&self, column: &str) -> Option<String> {
        let look = format!("select {column}::text from ticketflow.business_tasks");
        self.client.query_one(&look, &[]).await.unwrap().get(0)
    }

    pub(crate) async fn execute(&self, statement: &str) {
        self.client.batch_execute(statement).await.unwrap();
    }
}

impl Running {
    /// Stops cleanly.
    pub(crate) async fn stop(self) -> Result<(), TaskFailed> {
        self.shutdown.cancel();
        self.handle.await.unwrap()
    }

    /// Ends as by SIGKILL: nothing is awaited, nothing is settled.
    pub(crate) async fn kill(self) {
        self.handle.abort();
        let _ = self.handle.await;
    }
}

pub(crate) fn run(database: Database, config: Config) -> Running {
    let shutdown = CancellationToken::new();
    let readiness = Readiness::default();
    let (stop, ready) = (shutdown.clone(), readiness.clone());
    let handle = tokio::spawn(async move { outside::run(config, database, ready, stop).await });
    Running {
        shutdown,
        readiness,
        handle,
    }
}

/// With the grants that a consumer has, and no others.
pub(crate) fn consumer_database(url: &str) -> Database {
    let mut config = DatabaseConfig::for_url(url, "outside test");
    config.role = Some("ticketflow_consumer".to_owned());
    Database::open(config).unwrap()
}

/// Waits are short, so that a test sees several tries.
pub(crate) fn config(endpoints: Vec<Endpoint>) -> Config {
    Config {
        endpoints,
        pools: Vec::new(),
        leased_by: "test".to_owned(),
        policy: Policy {
            base: Duration::from_millis(5),
            cap: Duration::from_millis(50),
            max_attempts: 1000,
            retry_after_max: Duration::from_secs(3600),
        },
        lease: Duration::from_secs(30),
        circuit_failures: 1000,
        circuit_wait_max: Duration::from_millis(50),
        idle_poll: Duration::from_millis(20),
        grace: Duration::from_secs(20),
    }
}

pub(crate) fn endpoint(
    name: &str,
    tenants: Tenants,
    provider: impl Provider + 'static,
) -> Endpoint {
    Endpoint {
        name: name.to_owned(),
        tenants,
        provider: Arc::new(provider),
        concurrency: 16,
        rate_per_second: 0,
    }
}

pub(crate) fn everyone() -> Tenants {
    Tenants::AllBut(Vec::new())
}

pub(crate) fn target(receiver: &Receiver) -> Target {
    Target {
        url: receiver.url(),
        status_url: receiver.status_url(),
        secrets: Secrets::parse([SECRET]).unwrap(),
        connect_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(10),
        allow_private: true,
    }
}

pub(crate) fn webhook(target: Target) -> Webhook {
    Webhook::new(target).unwrap()
}

/// All tasks to one receiver.
pub(crate) fn to(receiver: &Receiver) -> Config {
    config(vec![endpoint(
        "hook",
        everyone(),
        webhook(target(receiver)),
    )])
}

/// A receiver that does as the script says with the first request for each key, and takes what
/// comes later.
pub(crate) async fn at_first<S>(script: S) -> Receiver
where
    S: Fn() -> Reply + Send + Sync + 'static,
{
    let seen = std::sync::Mutex::new(BTreeSet::new());
    Receiver::start(move |request: &Request| {
        let post = request.method == "POST";
        let first = post && seen.lock().unwrap().insert(request.key().to_owned());
        first.then(&script)
    })
    .await
    .unwrap()
}

pub(crate) async fn until<C>(what: &str, mut condition: C)
where
    C: AsyncFnMut() -> bool,
{
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The first error of a list that should be empty.
pub(crate) fn none<T: Debug>(found: &[T]) {
    assert!(found.is_empty(), "{found:?}");
}
