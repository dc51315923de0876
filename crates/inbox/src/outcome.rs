//! What became of a delivery.

use std::fmt;

/// What became of a delivery. Whatever it is, it is committed, and the delivery can be acked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The effect was applied, together with its receipt.
    Applied,
    /// It had been applied, or stands in a row that stands for this copy too. Nothing was done.
    Duplicate,
    /// The effect refuses for now: tried again from its row.
    Deferred,
    /// It waits in its row for the event before it.
    Waiting,
    /// It may have killed a process: tried alone from its row.
    Suspect,
    /// It needs a person, and why.
    Parked(Reason),
}

/// Why a row is where it is: the column `reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The effect refused and is tried again.
    Refused,
    /// An earlier version of the aggregate has not been applied.
    Order,
    /// It came back as a dead letter: one like it may have killed a process.
    Suspect,
    /// It is not an event, or not for this effect.
    Unreadable,
    /// The effect says that it can never apply it.
    Never,
    /// The effect refused as often as it may.
    Attempts,
    /// Its tries ended with the process, twice.
    Kills,
    /// Another content of the same identity came first.
    Conflict,
    /// Older than the dedup window: it cannot be told from a duplicate.
    BelowFloor,
    /// Its id was made more than a day in the future.
    Ahead,
}

impl Reason {
    /// Every reason, for metrics that start at zero.
    pub const ALL: [Self; 10] = [
        Self::Refused,
        Self::Order,
        Self::Suspect,
        Self::Unreadable,
        Self::Never,
        Self::Attempts,
        Self::Kills,
        Self::Conflict,
        Self::BelowFloor,
        Self::Ahead,
    ];

    /// The reason as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Order => "order",
            Self::Suspect => "suspect",
            Self::Unreadable => "unreadable",
            Self::Never => "never",
            Self::Attempts => "attempts",
            Self::Kills => "kills",
            Self::Conflict => "conflict",
            Self::BelowFloor => "below_floor",
            Self::Ahead => "ahead",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
