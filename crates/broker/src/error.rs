//! What can go wrong with the broker, sorted by what to do about it.

use std::fmt;

use lapin::ErrorKind;
use lapin::protocol::{AMQPError, AMQPErrorKind};

/// How much the broker closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// One channel; the connection goes on.
    Channel,
    /// The whole connection.
    Connection,
}

/// The broker closed a channel or a connection, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The AMQP reply code, e.g. 404.
    pub code: u16,
    /// The broker's text.
    pub text: String,
    /// What was closed.
    pub level: Level,
}

impl Closed {
    /// The code RabbitMQ uses when a connection is closed for reasons of its own: stopping, or
    /// an operator. It says nothing about what was being done.
    pub(crate) const FORCED: u16 = 320;
    const ACCESS_REFUSED: u16 = 403;
    const NOT_ALLOWED: u16 = 530;

    pub(crate) fn of(error: &lapin::Error) -> Option<Self> {
        if let ErrorKind::ProtocolError(error) = error.kind() {
            Some(Self::from_protocol(error))
        } else {
            None
        }
    }

    fn from_protocol(error: &AMQPError) -> Self {
        let level = match error.kind() {
            AMQPErrorKind::Soft(_) => Level::Channel,
            AMQPErrorKind::Hard(_) => Level::Connection,
        };
        Self {
            code: error.get_id(),
            text: error.get_message().to_string(),
            level,
        }
    }

    /// Its text, and what it most likely means when it comes from connecting.
    fn with_advice(self) -> String {
        let Self { code, text, .. } = self;
        match code {
            Self::NOT_ALLOWED => {
                format!("{text} (the path of the URL names the vhost; without one it is \"/\")")
            }
            _ => text,
        }
    }

    fn is_denial(&self) -> bool {
        matches!(self.code, Self::ACCESS_REFUSED | Self::NOT_ALLOWED)
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Channel => "channel",
            Level::Connection => "connection",
        };
        write!(formatter, "{} ({}, {level} closed)", self.text, self.code)
    }
}

/// Why the broker could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokerError {
    /// Away, blocked, or silent: back off and try again.
    #[error("the broker is not available: {0}")]
    Unavailable(String),
    /// Wrong password, unknown vhost, no right, a certificate that is not trusted: somebody has to
    /// change something.
    #[error("the broker does not let us in: {0}")]
    Denied(String),
    /// The broker refused this operation and closed its channel.
    #[error("the broker refused: {0}")]
    Refused(Closed),
    /// Never sent, since it could not be put into AMQP.
    #[error("not sent: {0}")]
    Invalid(String),
}

impl BrokerError {
    /// Whether trying again without a change is unlikely to help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Unavailable(_) => false,
            Self::Denied(_) | Self::Refused(_) | Self::Invalid(_) => true,
        }
    }

    /// What is behind it, without the class that it is sorted into.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Unavailable(words) | Self::Denied(words) | Self::Invalid(words) => words.clone(),
            Self::Refused(closed) => closed.to_string(),
        }
    }

    /// What an error says when it comes from connecting.
    pub(crate) fn at_connect(error: &lapin::Error) -> Self {
        match Closed::of(error) {
            Some(closed) if closed.is_denial() => Self::Denied(closed.with_advice()),
            Some(closed) => Self::Unavailable(closed.to_string()),
            None if is_tls_refusal(error) => Self::Denied(plain(error)),
            None => Self::Unavailable(plain(error)),
        }
    }
}

/// Whether one side did not like the other's certificate or TLS settings.
fn is_tls_refusal(error: &lapin::Error) -> bool {
    if let ErrorKind::IOError(error) = error.kind() {
        error.kind() == std::io::ErrorKind::InvalidData
    } else {
        false
    }
}

impl From<lapin::Error> for BrokerError {
    fn from(error: lapin::Error) -> Self {
        match Closed::of(&error) {
            Some(closed) if closed.level == Level::Channel => Self::Refused(closed),
            Some(closed) => Self::Unavailable(closed.to_string()),
            None => Self::Unavailable(plain(&error)),
        }
    }
}

/// lapin's text with the causes below it, which its `Display` leaves out.
pub(crate) fn plain(error: &lapin::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error).and_then(std::error::Error::source);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
