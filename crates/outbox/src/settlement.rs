//! What becomes of an event of a claimed batch.

use std::time::Duration;

/// How one event is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The broker has confirmed it.
    Published,
    /// It goes back as it is, to be claimed again at once.
    Released {
        /// What the broker answered, if it did. Noted in the row.
        answer: Option<String>,
    },
    /// It waits, and its aggregate with it. Counts as a refusal.
    Retried {
        /// For how long.
        delay: Duration,
        /// Why.
        reason: String,
    },
    /// It needs a person, and its aggregate waits for that.
    Parked {
        /// Why.
        reason: String,
    },
}

impl Settlement {
    /// Back as it is, without an answer.
    #[must_use]
    pub fn untouched() -> Self {
        Self::Released { answer: None }
    }

    /// Whether the broker has confirmed the event.
    #[must_use]
    pub fn is_published(&self) -> bool {
        match self {
            Self::Published => true,
            Self::Released { .. } | Self::Retried { .. } | Self::Parked { .. } => false,
        }
    }
}
