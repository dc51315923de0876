//! What it is to publish, for the real broker and for a scripted one.

use std::future::Future;

use event::Message;
use tokio::time::Instant;

use crate::error::BrokerError;
use crate::outcome::PublishOutcome;

/// Where a wave goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// To the exchange of all events, by routing key.
    Events,
    /// To the one queue that each message's routing key names (`Message::readdressed`).
    Queue,
}

/// A wave that is over.
#[derive(Debug)]
#[must_use]
pub struct Wave<P> {
    /// One for each message, in the order in which they were given.
    pub outcomes: Vec<PublishOutcome>,
    /// The publisher, if it can be used again. None when an answer is missing: what comes in late
    /// would be taken for the next wave's.
    pub publisher: Option<P>,
}

/// Publishes waves, one at a time.
pub trait Publish: Send + Sized {
    /// Sends all messages at once and waits for their answers, to the deadline at most.
    fn publish_wave(
        self,
        route: Route,
        messages: &[Message],
        deadline: Instant,
    ) -> impl Future<Output = Wave<Self>> + Send;
}

/// Where publishers come from.
pub trait Publishers: Send + Sync {
    /// What it makes.
    type Publisher: Publish;

    /// A publisher on the shared connection.
    fn publisher(&self) -> impl Future<Output = Result<Self::Publisher, BrokerError>> + Send;

    /// A publisher on a connection of its own, for messages under suspicion: whatever they break
    /// is nobody else's, and a wave of one that loses the connection has shown the culprit.
    fn lone_publisher(&self) -> impl Future<Output = Result<Self::Publisher, BrokerError>> + Send;
}
