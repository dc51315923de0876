//! Publishing that judges nothing: the ceiling that the benches hold the relay against.
//!
//! A window slides over all messages, encoded beforehand, of one channel. Nothing here tells a
//! returned message from a stored one for sure (see `judge`), so no process may use it.

use bytes::Bytes;
use event::{EXCHANGE, Message};
use futures_util::{StreamExt, TryStreamExt, stream};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{Channel, Confirmation};

use crate::broker::Broker;
use crate::encode::{Parcel, encode};
use crate::error::BrokerError;

const PUBLISH: BasicPublishOptions = BasicPublishOptions {
    mandatory: true,
    immediate: false,
};

/// Messages as the client wants them.
#[derive(Debug)]
pub struct Encoded(Vec<(Parcel, Bytes)>);

impl Encoded {
    /// Encodes messages, so that the clock need not run meanwhile.
    ///
    /// # Errors
    /// [`BrokerError::Invalid`] for a message that does not fit into AMQP.
    pub fn of(messages: &[Message]) -> Result<Self, BrokerError> {
        let encoded = messages.iter().map(|message| {
            let parcel = encode(message, 0).map_err(BrokerError::Invalid)?;
            Ok::<_, BrokerError>((parcel, message.body.clone()))
        });
        Ok(Self(encoded.collect::<Result<_, _>>()?))
    }
}

/// A channel in confirm mode without a wave.
#[derive(Debug)]
pub struct RawPublisher(Channel);

impl Broker {
    /// A raw publisher on the shared connection.
    ///
    /// # Errors
    /// [`BrokerError`]
    pub async fn raw_publisher(&self) -> Result<RawPublisher, BrokerError> {
        let channel = self.channel().await?;
        let select = channel.confirm_select(ConfirmSelectOptions::default());
        self.bounded("selecting confirm mode", select).await?;
        Ok(RawPublisher(channel))
    }
}

impl RawPublisher {
    /// Publishes to the events exchange with at most `window` messages unconfirmed; returns when
    /// all are.
    ///
    /// # Errors
    /// [`BrokerError`] if one was not confirmed.
    pub async fn publish(&self, messages: Encoded, window: usize) -> Result<(), BrokerError> {
        let exchange = ShortString::try_new(EXCHANGE).unwrap_or_default();
        stream::iter(messages.0)
            .map(|(parcel, body)| {
                let exchange = exchange.clone();
                async move {
                    let Parcel {
                        routing_key,
                        properties,
                    } = parcel;
                    let sent =
                        self.0
                            .basic_publish(exchange, routing_key, PUBLISH, &body, properties);
                    match sent.await?.await? {
                        Confirmation::Ack(None) => Ok(()),
                        Confirmation::Ack(Some(_)) => Err(not_stored("returned")),
                        Confirmation::Nack(_) => Err(not_stored("refused")),
                        Confirmation::NotRequested => Err(not_stored("not to be confirmed")),
                    }
                }
            })
            .buffered(window)
            .try_for_each(|()| std::future::ready(Ok(())))
            .await
    }
}

fn not_stored(how: &str) -> BrokerError {
    BrokerError::Invalid(format!("a message was {how}"))
}
