//! A subscription to one queue on a channel of its own.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;

use bytes::Bytes;
use event::Delivered;
use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{Acker, BasicProperties, Channel, Consumer};
use serde_json::Value;
use tokio::task::{JoinError, JoinHandle};

use crate::broker::Broker;
use crate::decode::{Death, delivered};
use crate::error::{BrokerError, Closed, plain};
use crate::kept;
use crate::queues::short;

/// Why a subscription brings no more deliveries. It is dropped, and a new one is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// As asked, with [`Deliveries::cancel`].
    Cancelled,
    /// The broker ended it: the queue was deleted, most likely.
    QueueGone,
    /// The broker closed the channel, e.g. because an acknowledgement took too long.
    Closed(Closed),
    /// The link broke.
    LinkLost {
        /// How.
        cause: String,
    },
    /// A batch was dropped without being acknowledged. Its deliveries come again once this
    /// subscription is dropped; until then an acknowledgement would cover them too.
    Abandoned,
}

impl fmt::Display for Ended {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => formatter.write_str("cancelled"),
            Self::QueueGone => formatter.write_str("the broker ended it (queue deleted?)"),
            Self::Closed(closed) => closed.fmt(formatter),
            Self::LinkLost { cause } => write!(formatter, "link lost: {cause}"),
            Self::Abandoned => formatter.write_str("a batch was abandoned"),
        }
    }
}

/// One delivery, not yet acknowledged.
#[derive(Debug)]
pub struct Received {
    /// What it says of itself. For a dead letter under the key of its first publication.
    pub delivered: Delivered,
    /// Whether the broker has delivered it before. Decides nothing.
    pub redelivered: bool,
    /// For a dead letter, where it died.
    pub death: Option<Death>,
    exchange: ShortString,
    properties: BasicProperties,
    acker: Acker,
}

impl Received {
    fn new(mut delivery: Delivery) -> Self {
        let (read, death) = delivered(&mut delivery);
        Self {
            delivered: read,
            redelivered: delivery.redelivered,
            death,
            exchange: delivery.exchange,
            properties: delivery.properties,
            acker: delivery.acker,
        }
    }

    /// The exact bytes of the body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.delivered.body
    }

    /// Key, properties and headers as JSON, to be kept with the body; see [`crate::restore`].
    #[must_use]
    pub fn kept(&self) -> Value {
        let exchange = self.exchange.as_str();
        kept::keep(exchange, &self.delivered.routing_key, &self.properties)
    }
}

/// Where a subscription is in its life.
#[derive(Debug)]
enum Phase {
    Running,
    /// Cancelled; what was prefetched still comes.
    Finishing,
    /// Cancelled to go on with another prefetch; what was prefetched still comes.
    Changing(u16),
    /// Being subscribed again, in a task: whoever waits may stop waiting in between.
    Subscribing(JoinHandle<Result<Consumer, BrokerError>>),
    Over(Ended),
}

/// Deliveries of one queue, a batch at a time.
#[derive(Debug)]
pub struct Deliveries {
    broker: Broker,
    channel: Channel,
    consumer: Consumer,
    queue: ShortString,
    phase: Phase,
    /// Received and not yet part of a batch. Their tags are above those of any batch out.
    waiting: VecDeque<Received>,
}

impl Broker {
    /// Subscribes to a queue. The prefetch is set before, so no flood comes first.
    ///
    /// # Errors
    /// [`BrokerError`]; `Refused` with 404 if there is no such queue.
    pub async fn deliveries(&self, queue: &str, prefetch: u16) -> Result<Deliveries, BrokerError> {
        let queue = short(queue)?;
        let channel = self.channel().await?;
        let consumer = consume(self, &channel, &queue, prefetch).await?;
        Ok(Deliveries {
            broker: self.clone(),
            channel,
            consumer,
            queue,
            phase: Phase::Running,
            waiting: VecDeque::new(),
        })
    }
}

async fn consume(
    broker: &Broker,
    channel: &Channel,
    queue: &ShortString,
    prefetch: u16,
) -> Result<Consumer, BrokerError> {
    let qos = channel.basic_qos(prefetch.max(1), BasicQosOptions { global: false });
    broker.bounded("setting the prefetch", qos).await?;
    let consuming = channel.basic_consume(
        queue.clone(),
        ShortString::default(),
        BasicConsumeOptions::default(),
        FieldTable::default(),
    );
    broker.bounded("subscribing", consuming).await
}

impl Deliveries {
    /// Asks for no more deliveries. Those on their way still come, then [`Ended::Cancelled`].
    pub async fn cancel(&mut self) {
        self.interrupt(Phase::Finishing).await;
    }

    /// Changes how many unacknowledged deliveries there may be. The broker takes no notice of a
    /// new prefetch for a running consumer, hence: cancel, finish what came, set, consume again.
    pub async fn set_prefetch(&mut self, prefetch: u16) {
        self.interrupt(Phase::Changing(prefetch)).await;
    }

    async fn interrupt(&mut self, next: Phase) {
        self.subscribe_again().await;
        match self.phase {
            Phase::Running => {}
            // The consumer is cancelled already: only what comes after is another thing now.
            Phase::Changing(_) => {
                self.phase = next;
                return;
            }
            Phase::Finishing | Phase::Subscribing(_) | Phase::Over(_) => return,
        }
        // Before the call: whoever stops waiting for it has cancelled all the same.
        self.phase = next;
        let cancel = self
            .channel
            .basic_cancel(self.consumer.tag(), BasicCancelOptions::default());
        let cancelled = self.broker.bounded("cancelling a subscription", cancel);
        if let Err(error) = cancelled.await {
            self.phase = Phase::Over(ended(&error));
        }
    }

    /// Takes over the new consumer, if one is being made.
    async fn subscribe_again(&mut self) {
        if let Phase::Subscribing(task) = &mut self.phase {
            self.phase = match subscribed(task.await) {
                Ok(consumer) => {
                    self.consumer = consumer;
                    Phase::Running
                }
                Err(ended) => Phase::Over(ended),
            };
        }
    }

    /// Waits for the next delivery and puts it among the waiting ones. May be cancelled: what came
    /// is kept, since nothing is awaited between taking it and keeping it.
    pub(crate) async fn receive(&mut self) -> Result<(), Ended> {
        loop {
            match &self.phase {
                Phase::Over(ended) => return Err(ended.clone()),
                Phase::Subscribing(_) => self.subscribe_again().await,
                Phase::Running | Phase::Finishing | Phase::Changing(_) => {
                    let item = self.consumer.next().await;
                    if self.take_in(item).is_break() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Takes what has already arrived, without waiting. False if there was nothing.
    pub(crate) fn receive_ready(&mut self) -> bool {
        matches!(self.receive().now_or_never(), Some(Ok(())))
    }

    fn take_in(&mut self, item: Option<lapin::Result<Delivery>>) -> ControlFlow<()> {
        match item {
            Some(Ok(delivery)) => {
                self.waiting.push_back(Received::new(delivery));
                return ControlFlow::Break(());
            }
            Some(Err(error)) => {
                self.phase = Phase::Over(match Closed::of(&error) {
                    Some(closed) => Ended::Closed(closed),
                    None => Ended::LinkLost {
                        cause: plain(&error),
                    },
                });
            }
            // The stream must not be polled again after this: it would wait for ever.
            None => self.phase = self.after_the_end(),
        }
        ControlFlow::Continue(())
    }

    fn after_the_end(&self) -> Phase {
        match self.phase {
            Phase::Finishing => Phase::Over(Ended::Cancelled),
            Phase::Changing(prefetch) => {
                let (broker, channel) = (self.broker.clone(), self.channel.clone());
                let queue = self.queue.clone();
                Phase::Subscribing(tokio::spawn(async move {
                    consume(&broker, &channel, &queue, prefetch).await
                }))
            }
            Phase::Running | Phase::Subscribing(_) | Phase::Over(_) => {
                Phase::Over(Ended::QueueGone)
            }
        }
    }

    pub(crate) fn waiting(&mut self) -> &mut VecDeque<Received> {
        &mut self.waiting
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over(_))
    }

    pub(crate) fn abandon(&mut self) {
        if !self.is_over() {
            self.phase = Phase::Over(Ended::Abandoned);
        }
        self.waiting.clear();
    }

    /// Acknowledges everything up to a delivery of this channel.
    pub(crate) async fn ack_up_to(&mut self, last: &Received) -> Result<(), Ended> {
        let ack = last.acker.ack(BasicAckOptions { multiple: true });
        let ended = match self.broker.bounded("acknowledging", ack).await {
            Ok(true) => return Ok(()),
            // The channel is gone, and lapin says so by not sending.
            Ok(false) => Ended::LinkLost {
                cause: "the channel closed before the acknowledgement".to_owned(),
            },
            Err(error) => ended(&error),
        };
        self.waiting.clear();
        self.phase = Phase::Over(ended.clone());
        Err(ended)
    }
}

fn subscribed(task: Result<Result<Consumer, BrokerError>, JoinError>) -> Result<Consumer, Ended> {
    match task {
        Ok(result) => result.map_err(|error| ended(&error)),
        Err(error) => Err(Ended::LinkLost {
            cause: error.to_string(),
        }),
    }
}

fn ended(error: &BrokerError) -> Ended {
    match error {
        BrokerError::Refused(closed) => Ended::Closed(closed.clone()),
        BrokerError::Unavailable(_) | BrokerError::Denied(_) | BrokerError::Invalid(_) => {
            Ended::LinkLost {
                cause: error.to_string(),
            }
        }
    }
}
