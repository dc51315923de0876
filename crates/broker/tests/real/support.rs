//! What the tests share: a site, a link to it, messages, waiting for a condition.

use std::sync::Arc;
use std::time::Duration;

use broker::{
    BatchLimits, Broker, ConfirmingPublisher, ConnectOptions, EffectQueue, LinkState, Publish,
    PublishOutcome, Publishers, Route,
};
use event::{EffectName, Message, PoolName};
use sandbox::{Sandbox, SandboxOptions, Site};
use tokio::time::Instant;

/// A virtual host, the events exchange, one queue for `ticket.#` of pool `p`, and a link.
pub(crate) struct Stage {
    pub(crate) site: Site,
    pub(crate) broker: Broker,
    pub(crate) queue: EffectQueue,
}

/// Long enough for two cores shared by many.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

impl Stage {
    pub(crate) async fn set(name: &str) -> Self {
        let sandbox = sandbox::shared().await.expect("servers");
        Self::in_sandbox(&sandbox, name).await
    }

    /// On servers of its own, to be broken.
    pub(crate) async fn set_apart(name: &str, rabbitmq_terms: &[&str]) -> Self {
        let options = SandboxOptions {
            rabbitmq_terms: rabbitmq_terms.iter().map(ToString::to_string).collect(),
            ..SandboxOptions::default()
        };
        let sandbox = Arc::new(Sandbox::start(options).await.expect("servers"));
        Self::in_sandbox(&sandbox, name).await
    }

    async fn in_sandbox(sandbox: &Arc<Sandbox>, name: &str) -> Self {
        let site = sandbox.site(name).await.expect("a site");
        let broker = connected(&site.amqp_url).await;
        let queue = EffectQueue {
            pool: PoolName::parse("p").expect("valid"),
            effect: EffectName::parse("search").expect("valid"),
            patterns: vec!["ticket.#".to_owned()],
        };
        let stage = Self {
            site,
            broker,
            queue,
        };
        stage.declare().await;
        stage
    }

    pub(crate) async fn declare(&self) {
        let effects = std::slice::from_ref(&self.queue.effect);
        self.broker.declare_exchanges().await.expect("exchanges");
        let dead = self.broker.declare_dead_queue(&self.queue.pool, effects);
        dead.await.expect("dead queue");
        let declared = self.broker.declare_effect_queue(&self.queue).await;
        declared.expect("effect queue");
    }

    /// Takes all that is in a queue, acknowledging it, and gives the message ids in order.
    pub(crate) async fn drain(&self, queue: &str, expected: usize) -> Vec<String> {
        let mut deliveries = self.broker.deliveries(queue, 500).await.expect("a queue");
        let mut ids = Vec::new();
        while ids.len() < expected {
            let batch = tokio::time::timeout(PATIENCE, deliveries.batch(limits(500)));
            let batch = batch.await.expect("in time").expect("deliveries");
            ids.extend(
                batch
                    .deliveries()
                    .iter()
                    .filter_map(|received| received.delivered.message_id.clone()),
            );
            batch.ack().await.expect("acknowledged");
        }
        ids
    }
}

pub(crate) fn limits(deliveries: usize) -> BatchLimits {
    BatchLimits {
        deliveries,
        bytes: 1 << 20,
        linger: Duration::from_millis(5),
    }
}

/// Options with short waits, so that broken links show soon.
pub(crate) fn options(url: &str) -> ConnectOptions {
    let url = format!("{url}?heartbeat=2");
    let mut options = ConnectOptions::new(url, "broker test");
    options.connect_timeout = Duration::from_secs(3);
    options.call_timeout = Duration::from_secs(5);
    options
}

pub(crate) async fn connected(url: &str) -> Broker {
    let broker = Broker::start(options(url)).expect("an address");
    broker.connected(PATIENCE).await.expect("a connection");
    broker
}

pub(crate) fn message(id: impl ToString, routing_key: &str) -> Message {
    Message {
        routing_key: routing_key.to_owned(),
        message_id: id.to_string(),
        kind: "ticket.created".to_owned(),
        timestamp: 1_796_069_700,
        content_type: "application/json".to_owned(),
        headers: vec![("h-colour".to_owned(), "red".to_owned())],
        body: vec![b'x'; 500].into(),
    }
}

/// A message that the stage's queue takes.
pub(crate) fn good(id: impl ToString) -> Message {
    message(id, "p.00.acme.ticket.created")
}

/// A message that no queue takes.
pub(crate) fn unroutable(id: impl ToString) -> Message {
    message(id, "elsewhere.00.acme.ticket.created")
}

pub(crate) fn soon() -> Instant {
    Instant::now() + PATIENCE
}

/// Publishes one wave, with a new publisher if there is none. Gives it back if it can be used.
pub(crate) async fn publish(
    broker: &Broker,
    publisher: Option<ConfirmingPublisher>,
    messages: &[Message],
    deadline: Instant,
) -> (Vec<PublishOutcome>, Option<ConfirmingPublisher>) {
    let publisher = match publisher {
        Some(publisher) => publisher,
        None => broker.publisher().await.expect("a publisher"),
    };
    let wave = publisher
        .publish_wave(Route::Events, messages, deadline)
        .await;
    assert_eq!(wave.outcomes.len(), messages.len());
    (wave.outcomes, wave.publisher)
}

pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) async fn state_where(broker: &Broker, what: &str, is: impl FnMut(&LinkState) -> bool) {
    let mut state = broker.state();
    let reached = tokio::time::timeout(PATIENCE, state.wait_for(is)).await;
    reached
        .unwrap_or_else(|_| panic!("the link never was {what}"))
        .expect("a supervisor");
}

pub(crate) fn is_down(state: &LinkState) -> bool {
    matches!(state, LinkState::Down { .. })
}

/// Bodies above this are refused by the shared broker with 406, in every test that comes after on
/// the same servers: so it is above what any of those sends.
pub(crate) const LARGEST_BODY: usize = 4 << 20;

impl Stage {
    pub(crate) async fn limit_bodies(&self) {
        let set = format!("application:set_env(rabbit, max_message_size, {LARGEST_BODY}), \"\"");
        self.site.sandbox().evaluate(&set).await.expect("a limit");
    }
}

/// lapin's threads in this process: none may be left over.
pub(crate) fn client_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a proc file system");
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.starts_with("lapin-io-loop"))
        .count()
}
