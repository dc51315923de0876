//! Exchanges and queues: declare, look, count, delete. Each call uses a channel of its own, since
//! the broker answers with closing it when something is wrong.

use event::{DEAD_EXCHANGE, EXCHANGE, EffectName, PoolName, dead_queue_name, queue_name};
use lapin::ExchangeKind;
use lapin::options::{
    ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};

use crate::broker::Broker;
use crate::error::{BrokerError, Closed};

/// How often an effect's queue delivers a message before it is dead. RabbitMQ 3.10 has no limit
/// of its own.
const DELIVERY_LIMIT: i64 = 20;

/// The dead queue leads nowhere, so what it drops is lost. RabbitMQ 4 drops after 20 deliveries
/// unless told otherwise, and 3.10 does not know the value for "never".
const NEVER: i64 = 1_000_000_000;

const NOT_FOUND: u16 = 404;
const PRECONDITION_FAILED: u16 = 406;

/// The queue of one effect in one pool, and what is bound to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectQueue {
    /// The pool.
    pub pool: PoolName,
    /// The effect.
    pub effect: EffectName,
    /// Binding patterns over event types, e.g. `ticket.#`.
    pub patterns: Vec<String>,
}

impl EffectQueue {
    /// `ticketflow.<pool>.<effect>`.
    #[must_use]
    pub fn name(&self) -> String {
        queue_name(&self.pool, &self.effect)
    }

    /// The keys it is bound with: `<pool>.*.*.<pattern>`, and `<pool>.#` for all types.
    #[must_use]
    pub fn binding_keys(&self) -> Vec<String> {
        let key = |pattern: &String| match pattern.as_str() {
            "#" => format!("{}.#", self.pool),
            pattern => format!("{}.*.*.{pattern}", self.pool),
        };
        self.patterns.iter().map(key).collect()
    }
}

/// What there is of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It is there.
    Present {
        /// Messages ready to be delivered.
        messages: u32,
        /// Consumers subscribed.
        consumers: u32,
    },
    /// It is not there.
    Missing,
}

/// Why a queue could not be declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeclareError {
    /// It exists, made otherwise. It has to be emptied and deleted, or left as it is, by a person.
    #[error("{name} exists with other arguments: {text}")]
    OtherArguments {
        /// The queue or exchange.
        name: String,
        /// The broker's words: which argument, and both values.
        text: String,
    },
    /// Anything else.
    #[error(transparent)]
    Broker(#[from] BrokerError),
}

impl DeclareError {
    fn of(name: &str, error: BrokerError) -> Self {
        if let BrokerError::Refused(Closed {
            code: PRECONDITION_FAILED,
            text,
            ..
        }) = error
        {
            let name = name.to_owned();
            Self::OtherArguments { name, text }
        } else {
            Self::Broker(error)
        }
    }
}

impl Broker {
    /// Declares the two exchanges: events (topic) and dead letters (direct).
    ///
    /// # Errors
    /// [`DeclareError`]
    pub async fn declare_exchanges(&self) -> Result<(), DeclareError> {
        for (name, kind) in [
            (EXCHANGE, ExchangeKind::Topic),
            (DEAD_EXCHANGE, ExchangeKind::Direct),
        ] {
            let channel = self.channel().await?;
            let options = ExchangeDeclareOptions {
                durable: true,
                ..ExchangeDeclareOptions::default()
            };
            let declaring =
                channel.exchange_declare(short(name)?, kind, options, FieldTable::default());
            self.bounded("declaring an exchange", declaring)
                .await
                .map_err(|error| DeclareError::of(name, error))?;
        }
        Ok(())
    }

    /// Declares a pool's dead queue and binds it with the names of the given effects' queues. It
    /// has to be there before them: without it the broker keeps dead messages where no counter
    /// shows them.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub async fn declare_dead_queue(
        &self,
        pool: &PoolName,
        effects: &[EffectName],
    ) -> Result<(), DeclareError> {
        let name = dead_queue_name(pool);
        let keys: Vec<_> = effects
            .iter()
            .map(|effect| queue_name(pool, effect))
            .collect();
        self.declare(&name, dead_arguments()?).await?;
        Ok(self.bind(&name, DEAD_EXCHANGE, &keys).await?)
    }

    /// Declares an effect's queue and binds it. The exchanges and the pool's dead queue must be
    /// there.
    ///
    /// # Errors
    /// [`DeclareError`]
    pub async fn declare_effect_queue(&self, queue: &EffectQueue) -> Result<Look, DeclareError> {
        let name = queue.name();
        let look = self.declare(&name, effect_arguments(&name)?).await?;
        self.bind_effect_queue(queue).await?;
        Ok(look)
    }

    /// Binds an effect's queue again: a binding that is there already stays as it is.
    ///
    /// # Errors
    /// [`BrokerError`]; `Refused` with 404 if the queue or the exchange is missing.
    pub async fn bind_effect_queue(&self, queue: &EffectQueue) -> Result<(), BrokerError> {
        self.bind(&queue.name(), EXCHANGE, &queue.binding_keys())
            .await
    }

    /// Looks whether a queue is there, without making it.
    ///
    /// # Errors
    /// [`BrokerError`]
    pub async fn look_at(&self, queue: &str) -> Result<Look, BrokerError> {
        let channel = self.channel().await?;
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let looking = channel.queue_declare(short(queue)?, options, FieldTable::default());
        match self.bounded("looking at a queue", looking).await {
            Ok(found) => Ok(present(&found)),
            Err(BrokerError::Refused(Closed {
                code: NOT_FOUND, ..
            })) => Ok(Look::Missing),
            Err(error) => Err(error),
        }
    }

    /// Deletes a queue, with whatever is in it. One that is not there counts as deleted.
    ///
    /// # Errors
    /// [`BrokerError`]
    pub async fn delete_queue(&self, queue: &str) -> Result<(), BrokerError> {
        let channel = self.channel().await?;
        let deleting = channel.queue_delete(short(queue)?, QueueDeleteOptions::default());
        self.bounded("deleting a queue", deleting).await.map(drop)
    }

    async fn declare(&self, name: &str, arguments: FieldTable) -> Result<Look, DeclareError> {
        let channel = self.channel().await?;
        let options = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        let declaring = channel.queue_declare(short(name)?, options, arguments);
        let declared = self.bounded("declaring a queue", declaring).await;
        declared
            .map(|queue| present(&queue))
            .map_err(|error| DeclareError::of(name, error))
    }

    async fn bind(&self, queue: &str, exchange: &str, keys: &[String]) -> Result<(), BrokerError> {
        let channel = self.channel().await?;
        for key in keys {
            let binding = channel.queue_bind(
                short(queue)?,
                short(exchange)?,
                short(key)?,
                QueueBindOptions::default(),
                FieldTable::default(),
            );
            self.bounded("binding a queue", binding).await?;
        }
        Ok(())
    }
}

fn present(queue: &lapin::Queue) -> Look {
    Look::Present {
        messages: queue.message_count(),
        consumers: queue.consumer_count(),
    }
}

fn effect_arguments(name: &str) -> Result<FieldTable, BrokerError> {
    let text = |text: &str| AMQPValue::LongString(text.into());
    arguments([
        ("x-queue-type", text("quorum")),
        ("x-overflow", text("reject-publish")),
        ("x-delivery-limit", AMQPValue::LongLongInt(DELIVERY_LIMIT)),
        ("x-dead-letter-exchange", text(DEAD_EXCHANGE)),
        ("x-dead-letter-routing-key", text(name)),
        ("x-dead-letter-strategy", text("at-least-once")),
    ])
}

fn dead_arguments() -> Result<FieldTable, BrokerError> {
    arguments([
        ("x-queue-type", AMQPValue::LongString("quorum".into())),
        ("x-overflow", AMQPValue::LongString("reject-publish".into())),
        ("x-delivery-limit", AMQPValue::LongLongInt(NEVER)),
    ])
}

fn arguments<const N: usize>(pairs: [(&str, AMQPValue); N]) -> Result<FieldTable, BrokerError> {
    let mut table = FieldTable::default();
    for (name, value) in pairs {
        table.insert(short(name)?, value);
    }
    Ok(table)
}

pub(crate) fn short(name: &str) -> Result<ShortString, BrokerError> {
    ShortString::try_new(name).map_err(|_| {
        BrokerError::Invalid(format!("a name of {} bytes, AMQP takes 255", name.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_binding_keys_of_the_pool_alone() {
        let queue = EffectQueue {
            pool: PoolName::parse("acme").expect("valid"),
            effect: EffectName::parse("search").expect("valid"),
            patterns: vec![
                "ticket.#".to_owned(),
                "user.created".to_owned(),
                "#".to_owned(),
            ],
        };
        assert_eq!(queue.name(), "ticketflow.acme.search");
        assert_eq!(
            queue.binding_keys(),
            ["acme.*.*.ticket.#", "acme.*.*.user.created", "acme.#"]
        );
    }
}
