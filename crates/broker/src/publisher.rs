//! The publisher: one task's own channel, in confirm mode from its making.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use event::{EXCHANGE, Message};
use futures_util::future::join_all;
use lapin::message::BasicReturnMessage;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{Channel, Confirmation, PublisherConfirm};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::broker::Broker;
use crate::encode::encode;
use crate::error::{BrokerError, Closed, plain};
use crate::judge::{Answer, Evidence, Failure, Key, Returned, judge};
use crate::line::{Line, bounded};
use crate::link::LinkState;
use crate::outcome::{Doubt, PublishOutcome};
use crate::publish::{Publish, Publishers, Route, Wave};

/// Mandatory: what no queue takes comes back. (Unless a planted bug forgets it.)
fn publish_options() -> BasicPublishOptions {
    BasicPublishOptions {
        mandatory: !crate::mutant::is_planted(crate::mutant::NO_MANDATORY),
        immediate: false,
    }
}

/// A channel in confirm mode with one owner.
#[derive(Debug)]
pub struct ConfirmingPublisher {
    channel: Channel,
    frame_max: u32,
    link: Link,
}

/// What the channel hangs on.
#[derive(Debug)]
enum Link {
    Shared(watch::Receiver<LinkState>),
    Own(Arc<Line>),
}

impl Link {
    /// Why nothing should be handed to the client now: it would keep it and send it late.
    fn obstacle(&self) -> Option<String> {
        match self {
            Self::Shared(state) => state.borrow().obstacle(),
            Self::Own(line) if line.connection.status().blocked() => Some("blocked".to_owned()),
            Self::Own(line) if line.is_up() => None,
            Self::Own(_) => Some("the connection was lost".to_owned()),
        }
    }

    /// What silence to the deadline means.
    fn silence(&self) -> Doubt {
        match self {
            Self::Shared(state) => match &*state.borrow() {
                LinkState::Blocked { reason } => Doubt::Blocked {
                    reason: reason.clone(),
                },
                LinkState::Connected => Doubt::TimedOut,
                LinkState::Down { error, .. } => Doubt::LinkLost {
                    cause: error.clone(),
                },
                LinkState::Connecting => Doubt::LinkLost {
                    cause: "connecting".to_owned(),
                },
            },
            Self::Own(line) if line.connection.status().blocked() => Doubt::Blocked {
                reason: "blocked".to_owned(),
            },
            Self::Own(_) => Doubt::TimedOut,
        }
    }
}

impl ConfirmingPublisher {
    async fn on_shared_link(broker: &Broker) -> Result<Self, BrokerError> {
        let line = broker.link.line()?;
        let channel = broker.channel().await?;
        Self::confirming(broker, channel, &line, Link::Shared(broker.state())).await
    }

    async fn on_own_link(broker: &Broker) -> Result<Self, BrokerError> {
        // A broker that blocks the shared link would block this one at its first message.
        broker.link.line()?;
        let line = Arc::new(broker.link.connect().await?);
        let opening = line.connection.create_channel();
        let channel = broker.bounded("opening a channel", opening).await?;
        Self::confirming(broker, channel, &line.clone(), Link::Own(line)).await
    }

    async fn confirming(
        broker: &Broker,
        channel: Channel,
        line: &Line,
        link: Link,
    ) -> Result<Self, BrokerError> {
        let select = channel.confirm_select(ConfirmSelectOptions::default());
        let within = broker.link.options.call_timeout;
        bounded(within, "selecting confirm mode", select).await?;
        Ok(Self {
            channel,
            frame_max: line.connection.configuration().frame_max(),
            link,
        })
    }

    /// Hands every message to the client in order. The first poll of each puts its frames into
    /// the client's queue, so the order on the wire is the order given.
    async fn send(&self, route: Route, messages: &[Message], deadline: Instant) -> Vec<Slot> {
        let exchange = match route {
            Route::Events => ShortString::try_new(EXCHANGE).unwrap_or_default(),
            Route::Queue => ShortString::default(),
        };
        let sending = join_all(messages.iter().map(|message| {
            let exchange = exchange.clone();
            async move {
                let parcel = match encode(message, self.frame_max) {
                    Ok(parcel) => parcel,
                    Err(reason) => return Slot::Answered(Answer::Invalid(reason)),
                };
                let (key, properties) = (parcel.routing_key, parcel.properties);
                let sent = self.channel.basic_publish(
                    exchange,
                    key,
                    publish_options(),
                    &message.body,
                    properties,
                );
                match sent.await {
                    Ok(confirm) => Slot::Waiting(confirm),
                    Err(error) => Slot::Answered(failed(&error)),
                }
            }
        }));
        match timeout_at(deadline, sending).await {
            Ok(slots) => slots,
            // Stuck while writing. What of it went out is unknown, so all of it is.
            Err(_) => messages
                .iter()
                .map(|_| Slot::Answered(Answer::Silent))
                .collect(),
        }
    }
}

impl Publish for ConfirmingPublisher {
    async fn publish_wave(
        self,
        route: Route,
        messages: &[Message],
        deadline: Instant,
    ) -> Wave<Self> {
        if let Some(obstacle) = self.link.obstacle() {
            let doubt = PublishOutcome::Unknown(Doubt::NotSent { obstacle });
            return Wave {
                outcomes: vec![doubt; messages.len()],
                publisher: self.channel.status().connected().then_some(self),
            };
        }
        let mut slots = self.send(route, messages, deadline).await;
        let mut returned = HashMap::new();
        collect(&mut slots, &mut returned, deadline).await;
        let answers = slots.into_iter().map(Slot::answer);
        let keys = messages.iter().map(|message| Key {
            message_id: message.message_id.clone(),
            routing_key: message.routing_key.clone(),
        });
        let (outcomes, usable) = judge(Evidence {
            answers: keys.zip(answers).collect(),
            returned,
            silence: self.link.silence(),
            own_connection: matches!(self.link, Link::Own(_)),
        });
        Wave {
            outcomes,
            publisher: usable.then_some(self),
        }
    }
}

impl Publishers for Broker {
    type Publisher = ConfirmingPublisher;

    async fn publisher(&self) -> Result<ConfirmingPublisher, BrokerError> {
        ConfirmingPublisher::on_shared_link(self).await
    }

    async fn lone_publisher(&self) -> Result<ConfirmingPublisher, BrokerError> {
        ConfirmingPublisher::on_own_link(self).await
    }
}

/// One publish of a wave.
enum Slot {
    Waiting(PublisherConfirm),
    Answered(Answer),
}

type ReturnedMessages = HashMap<Key, Returned>;

impl Slot {
    fn poll(&mut self, context: &mut Context<'_>, returned: &mut ReturnedMessages) -> Poll<Answer> {
        let Self::Waiting(confirm) = self else {
            return Poll::Pending;
        };
        Pin::new(confirm)
            .poll(context)
            .map(|confirmation| match confirmation {
                Ok(Confirmation::Ack(None)) => Answer::Ack { carrier: false },
                Ok(Confirmation::Ack(Some(message))) => {
                    note(returned, &message);
                    Answer::Ack { carrier: true }
                }
                Ok(Confirmation::Nack(message)) => {
                    message.iter().for_each(|message| note(returned, message));
                    Answer::Nack
                }
                Ok(Confirmation::NotRequested) => Answer::NotConfirming,
                Err(error) => failed(&error),
            })
    }

    fn answer(self) -> Answer {
        match self {
            Self::Waiting(_) => Answer::Silent,
            Self::Answered(answer) => answer,
        }
    }
}

/// Takes in the answers until all are there or the deadline has passed.
async fn collect(slots: &mut [Slot], returned: &mut ReturnedMessages, deadline: Instant) {
    let waiting = async {
        for slot in slots
            .iter_mut()
            .filter(|slot| matches!(slot, Slot::Waiting(_)))
        {
            let answer = std::future::poll_fn(|context| slot.poll(context, returned)).await;
            *slot = Slot::Answered(answer);
        }
    };
    if timeout_at(deadline, waiting).await.is_ok() {
        return;
    }
    let mut context = Context::from_waker(Waker::noop());
    for slot in slots.iter_mut() {
        if let Poll::Ready(answer) = slot.poll(&mut context, returned) {
            *slot = Slot::Answered(answer);
        }
    }
    // Once more, for the returns only: one that belongs to a message above may hang on a confirm
    // that completed before that message's, yet after it was looked at. An answer that shows up
    // only now stays out, since its own return could hang on one that was looked at just before.
    for slot in slots.iter_mut() {
        if slot.poll(&mut context, returned).is_ready() {
            *slot = Slot::Answered(Answer::Silent);
        }
    }
}

fn note(returned: &mut ReturnedMessages, message: &BasicReturnMessage) {
    let id = message.delivery.properties.message_id();
    let key = Key {
        message_id: id.as_ref().map(ToString::to_string).unwrap_or_default(),
        routing_key: message.delivery.routing_key.to_string(),
    };
    let back = Returned {
        code: message.reply_code,
        text: message.reply_text.to_string(),
    };
    returned.insert(key, back);
}

fn failed(error: &lapin::Error) -> Answer {
    Answer::Failed(match Closed::of(error) {
        Some(closed) => Failure::Closed(closed),
        None => Failure::Lost(plain(error)),
    })
}
