//! The broker's answer to one message.

use std::fmt;

use crate::error::Closed;

/// What became of one message of a wave. Closed: every user handles all four.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishOutcome {
    /// Acknowledged and not returned: it is in every queue it was routed to, on disk.
    Confirmed,
    /// Returned: no queue takes it.
    Unroutable {
        /// The reply code, 312.
        code: u16,
        /// The broker's words.
        text: String,
    },
    /// Refused, for certain because of this message or its destination.
    Refused(Refusal),
    /// It may have arrived or not.
    Unknown(Doubt),
}

/// Who refused a message and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A queue could not take it: full, or out of order.
    Nack,
    /// It was alone on its channel, and the broker closed that.
    Closed(Closed),
    /// Never sent: it does not fit into AMQP.
    Invalid {
        /// Which limit it breaks.
        reason: String,
    },
}

/// Why the fate of a message is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// Nothing of it left this process, since the link was down or blocked.
    NotSent {
        /// What the link was like.
        obstacle: String,
    },
    /// The link broke.
    LinkLost {
        /// How.
        cause: String,
    },
    /// The broker closed the channel or connection with several messages on it. One of them may
    /// be the reason, to be found by publishing them one by one.
    Closed(Closed),
    /// The broker blocked the link during the wave.
    Blocked {
        /// The broker's words.
        reason: String,
    },
    /// No answer in time on a link that is up.
    TimedOut,
    /// The channel was not in confirm mode: a bug, never a success.
    NotConfirming,
}

impl fmt::Display for PublishOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Confirmed => formatter.write_str("confirmed"),
            Self::Unroutable { code, text } => write!(formatter, "unroutable: {text} ({code})"),
            Self::Refused(refusal) => write!(formatter, "refused: {refusal}"),
            Self::Unknown(doubt) => write!(formatter, "unknown: {doubt}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nack => formatter.write_str("a queue does not take it (nack)"),
            Self::Closed(closed) => closed.fmt(formatter),
            Self::Invalid { reason } => formatter.write_str(reason),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent { obstacle } => write!(formatter, "not sent: {obstacle}"),
            Self::LinkLost { cause } => write!(formatter, "link lost: {cause}"),
            Self::Closed(closed) => closed.fmt(formatter),
            Self::Blocked { reason } => write!(formatter, "blocked by the broker: {reason}"),
            Self::TimedOut => formatter.write_str("no confirm in time"),
            Self::NotConfirming => formatter.write_str("the channel was not in confirm mode"),
        }
    }
}
