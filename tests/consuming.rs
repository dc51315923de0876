//! A stage for the consumer's tests: a site with its queues, messages by hand, and consumers that
//! are run as the process runs them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use broker::{Broker, ConnectOptions, EffectQueue, Publish, PublishOutcome, Publishers, Route};
use consumer::{Config, ConsumerError, PROCESS};
use event::{
    Aggregate, AggregateId, AggregateType, ContentType, Delivered, EffectName, Event, EventType,
    HeaderValue, Headers, Identity, Message, PoolName, Source, TenantId, TraceContext,
};
use inbox::Effect;
use runtime::settings::{Invocation, Sources};
use sandbox::{Sandbox, Site};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Long enough for a busy machine; nothing waits that long unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// A site with the queues of one pool.
pub(crate) struct Stage {
    pub(crate) site: Site,
    pub(crate) database: Client,
    pub(crate) broker: Broker,
}

/// A consumer that runs until it is stopped or dropped.
pub(crate) struct Running {
    pub(crate) admin: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ConsumerError>>,
}

impl Stage {
    /// In the servers that all tests share.
    pub(crate) async fn new(name: &str) -> Self {
        Self::on(&sandbox::shared().await.expect("servers"), name).await
    }

    /// In servers of the caller's choice.
    pub(crate) async fn on(sandbox: &Arc<Sandbox>, name: &str) -> Self {
        crate::relaying::log();
        let site = sandbox.site(name).await.expect("a site");
        let database = site.database().await.expect("a session");
        let broker = Broker::start(ConnectOptions::new(site.amqp_url.clone(), "test")).unwrap();
        broker.connected(PATIENCE).await.expect("a link");
        let stage = Self {
            site,
            database,
            broker,
        };
        stage
            .run("insert into ticketflow.tenants (tenant_id) values ('acme'), ('globex')")
            .await;
        stage.declare(&["notification", "search", "audit"]).await;
        stage
    }

    /// Declares the queues of these effects in the shared pool.
    pub(crate) async fn declare(&self, effects: &[&str]) {
        let names: Vec<_> = effects
            .iter()
            .map(|name| EffectName::parse(name).unwrap())
            .collect();
        self.broker.declare_exchanges().await.unwrap();
        self.broker
            .declare_dead_queue(&shared(), &names)
            .await
            .unwrap();
        for effect in names {
            let all = effect.as_str() == "audit";
            let queue = EffectQueue {
                pool: shared(),
                effect,
                patterns: vec![if all { "#" } else { "ticket.#" }.to_owned()],
            };
            self.broker.declare_effect_queue(&queue).await.unwrap();
        }
    }

    /// Publishes events to the exchange of all events.
    pub(crate) async fn publish<'a>(&self, events: impl IntoIterator<Item = &'a Event>) {
        let messages: Vec<_> = events.into_iter().map(message).collect();
        self.send(Route::Events, &messages).await;
    }

    /// Publishes messages to the queue of one effect only.
    pub(crate) async fn send_to(&self, effect: &str, messages: impl IntoIterator<Item = Message>) {
        let queue = format!("ticketflow.shared.{effect}");
        let messages: Vec<_> = messages
            .into_iter()
            .map(|one| one.readdressed(&queue))
            .collect();
        self.send(Route::Queue, &messages).await;
    }

    pub(crate) async fn send(&self, route: Route, messages: &[Message]) {
        for wave in messages.chunks(500) {
            let publisher = self.broker.publisher().await.expect("a publisher");
            let deadline = tokio::time::Instant::now() + PATIENCE;
            let done = publisher.publish_wave(route, wave, deadline).await;
            let confirmed = |outcome: &PublishOutcome| *outcome == PublishOutcome::Confirmed;
            assert!(done.outcomes.iter().all(confirmed), "{:?}", done.outcomes);
        }
    }

    /// Runs a consumer with these settings beside the usual ones.
    pub(crate) async fn consumer(&self, arguments: &[&str]) -> Running {
        let config = self.config(arguments);
        let effects = config
            .effects
            .iter()
            .map(|name| consumer::effects::by_name(name).unwrap());
        let effects = effects.collect();
        Running::start(config, effects).await
    }

    /// Runs a consumer with one effect of the test's own.
    pub(crate) async fn consumer_of(&self, effect: Arc<dyn Effect>, arguments: &[&str]) -> Running {
        Running::start(self.config(arguments), vec![effect]).await
    }

    pub(crate) fn config(&self, arguments: &[&str]) -> Config {
        self.config_through(&self.site.database_url, &self.site.amqp_url, arguments)
    }

    /// For servers that are reached in another way.
    pub(crate) fn config_through(
        &self,
        database_url: &str,
        amqp_url: &str,
        arguments: &[&str],
    ) -> Config {
        let mut all = vec!["--admin", "127.0.0.1:0", "--retry-poll", "20ms"];
        all.extend(arguments);
        let environment = [("DATABASE_URL", database_url), ("AMQP_URL", amqp_url)];
        match PROCESS
            .read(&Sources::of(&all, &environment))
            .expect("settings")
        {
            Invocation::Run(settings) => Config::from_settings(&settings).expect("a config"),
            Invocation::Say(text) => panic!("{text}"),
        }
    }

    pub(crate) async fn run(&self, statement: &str) {
        self.database
            .batch_execute(statement)
            .await
            .expect(statement);
    }

    pub(crate) async fn count(&self, query: &str) -> i64 {
        self.database
            .query_one(query, &[])
            .await
            .expect(query)
            .get(0)
    }

    /// Waits until a count is as wanted.
    pub(crate) async fn until(&self, query: &str, wanted: i64) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let count = self.count(query).await;
            if count == wanted {
                return;
            }
            let late = tokio::time::Instant::now() > deadline;
            assert!(!late, "{query}: {count}, not {wanted}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until so many deliveries of an effect's queue are unacknowledged.
    pub(crate) async fn until_unacked(&self, effect: &str, wanted: u64) {
        let name = format!("ticketflow.shared.{effect}");
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let queues = self.site.queues().await.expect("queues");
            let queue = queues
                .iter()
                .find(|queue| queue.name == name)
                .expect("the queue");
            if queue.unacked == wanted {
                return;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "{queue:?}, not {wanted}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until an effect's queue holds so many deliveries, acknowledged none of them.
    pub(crate) async fn until_held(&self, effect: &str, wanted: u64) {
        let name = format!("ticketflow.shared.{effect}");
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let queues = self.site.queues().await.expect("queues");
            let queue = queues
                .iter()
                .find(|queue| queue.name == name)
                .expect("the queue");
            if queue.ready + queue.unacked == wanted {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{queue:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until no queue holds anything, acknowledged or not.
    pub(crate) async fn until_empty(&self) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let queues = self.site.queues().await.expect("queues");
            if queues.iter().all(|queue| queue.ready + queue.unacked == 0) {
                return;
            }
            let late = tokio::time::Instant::now() > deadline;
            assert!(!late, "{queues:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Puts a ticket in place, as the producer would.
    pub(crate) async fn ticket(&self, tenant: &str, id: Uuid) {
        let statement = "insert into ticketflow.tickets (tenant_id, ticket_id, version, subject)
                         values ($1::text, $2, 1, 's')";
        let done = self.database.execute(statement, &[&tenant, &id]).await;
        done.expect("a ticket");
    }
}

impl Running {
    pub(crate) async fn start(config: Config, effects: Vec<Arc<dyn Effect>>) -> Self {
        let stop = CancellationToken::new();
        let (sender, told) = oneshot::channel();
        let running = consumer::run_effects(config, effects, stop.clone(), sender);
        let task = tokio::spawn(running);
        let admin = told.await.expect("it starts");
        Self { admin, stop, task }
    }

    /// Stops it cleanly.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(PATIENCE, &mut self.task).await;
        ended
            .expect("it stops in time")
            .expect("no panic")
            .expect("a clean stop");
    }

    /// Cuts it off where it is, as a kill would: nothing of it runs any more.
    pub(crate) async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    /// The answer of the admin port: status and body.
    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(self.admin)
            .await
            .expect("admin port");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or(0);
        (status, answer)
    }

    /// The value of a series at the admin port; 0 if it is not there. The tests of this process
    /// share their metrics, so only a counter's rise says something.
    pub(crate) async fn metric(&self, series: &str) -> f64 {
        let (_, metrics) = self.get("/metrics").await;
        let mut lines = metrics.lines();
        let value = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().expect("a number"))
    }

    /// Waits until it says it is ready, or not.
    pub(crate) async fn until_ready(&self, wanted: bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let (status, answer) = self.get("/readyz").await;
            if (status == 200) == wanted {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{answer}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn shared() -> PoolName {
    PoolName::parse("shared").unwrap()
}

pub(crate) fn message(event: &Event) -> Message {
    Message::of(event, &shared()).expect("publishable")
}

/// An event as the broker's deliveries bring it.
pub(crate) fn delivered(event: &Event) -> Delivered {
    let message = message(event);
    let text = |(name, value)| (name, HeaderValue::Text(value));
    Delivered {
        routing_key: message.routing_key,
        message_id: Some(message.message_id),
        kind: Some(message.kind),
        content_type: Some(message.content_type),
        headers: message.headers.into_iter().map(text).collect(),
        body: message.body,
    }
}

/// A ticket's event with the body that the producer would give it.
pub(crate) fn ticket_event(tenant: &str, ticket: Uuid, version: i64) -> Event {
    let kind = if version == 1 {
        "ticket.created"
    } else {
        "ticket.updated"
    };
    let body = format!(
        "{{\"event_type\":\"{kind}\",\"ticket\":{{\"tenant_id\":\"{tenant}\",\"ticket_id\":\"{ticket}\",\
         \"version\":{version},\"subject\":\"subject {version}\",\"body\":\"body\",\
         \"status\":\"open\",\"priority\":\"normal\",\"assignee\":null,\
         \"created_at\":\"2026-11-30T20:15:00.123456Z\",\
         \"updated_at\":\"2026-11-30T20:15:00.123456Z\"}},\"payload\":{{\"v\":1.10}}}}"
    );
    Event {
        identity: Identity {
            event_id: Uuid::now_v7(),
            tenant_id: TenantId::parse(tenant).unwrap(),
            source: Source::parse("ticketflow").unwrap(),
        },
        aggregate: Aggregate {
            aggregate_type: AggregateType::parse("ticket").unwrap(),
            aggregate_id: AggregateId::parse(&ticket.to_string()).unwrap(),
        },
        version: Some(version),
        previous_version: Some(version - 1),
        event_type: EventType::parse(kind).unwrap(),
        content_type: ContentType::parse("application/json").unwrap(),
        payload: body.into(),
        headers: Headers::new(),
        trace_context: TraceContext::default(),
        occurred_at: chrono::Utc::now(),
    }
}
