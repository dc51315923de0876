//! What another crate implements: one effect of an event, applied inside the inbox's transaction.

use deadpool_postgres::Transaction;
use event::{Digest, EffectName, Event};
use futures_util::future::BoxFuture;
use tokio_postgres::error::SqlState;

use crate::failure::Remedy;
use crate::mutant;

/// One effect that events have on the database. Each effect has its own queue, its own receipts
/// and its own failures.
///
/// An effect writes through the transaction it is given and through nothing else: then it is
/// applied exactly once for each event, whatever is delivered twice, refused or killed.
pub trait Effect: Send + Sync {
    /// Its name: part of the receipt's key and of its queues' names. Never changes.
    fn name(&self) -> &EffectName;

    /// The binding patterns of the event types it takes, e.g. `ticket.#`.
    fn event_types(&self) -> &[&'static str];

    /// Whether the events of one aggregate are to be applied in version order. Such an effect
    /// must take every event type of its aggregates.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Looks at an event before any transaction: what the effect could never apply.
    ///
    /// # Errors
    /// Why this event can never be applied. It is parked with that reason and costs its
    /// neighbours nothing.
    fn check(&self, event: &Event) -> Result<(), String> {
        let _ = event;
        Ok(())
    }

    /// Applies the events, of which none has been applied before, in the order given.
    ///
    /// A set may hold several versions of one aggregate. Rows are best written as a set and in
    /// the order of their keys, since another consumer may write the same ones at the same time.
    /// Whatever it returns as an error is rolled back; then each event comes alone.
    fn apply<'a>(
        &'a self,
        transaction: &'a Transaction<'_>,
        events: &'a [Applicable<'a>],
    ) -> BoxFuture<'a, Result<(), Refusal>>;
}

/// An event that is to be applied now.
#[derive(Debug, Clone, Copy)]
pub struct Applicable<'a> {
    /// The event.
    pub event: &'a Event,
    /// Its content digest.
    pub digest: &'a Digest,
    /// Where it stands in its aggregate's order.
    pub place: Place,
}

/// Where an event stands in the order of its aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The effect keeps no order, or the event has no version.
    Unordered,
    /// It follows the last one applied.
    Next,
    /// It came after a later version was applied.
    Late,
    /// Versions before it were given up waiting for.
    AfterGap,
}

/// Why an effect did not apply.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The database refused or went away; its SQLSTATE decides what helps.
    #[error("the database refuses: {}", crate::failure::shown(.0))]
    Database(#[from] tokio_postgres::Error),
    /// Not now: tried again with backoff.
    #[error("{0}")]
    Later(String),
    /// Never: parked at once.
    #[error("{0}")]
    Never(String),
}

impl Refusal {
    /// Never, unless that bug is planted: only the receipt's own key means duplicate.
    pub(crate) fn is_taken_for_duplicate(&self) -> bool {
        let unique = match self {
            Self::Database(error) => error.code() == Some(&SqlState::UNIQUE_VIOLATION),
            Self::Later(_) | Self::Never(_) => false,
        };
        unique && mutant::is_planted(mutant::UNIQUE_IS_DUPLICATE)
    }

    /// Whether it says nothing about the event: the transaction lost, or the database is away.
    pub(crate) fn is_of_the_database(&self) -> bool {
        match self {
            Self::Database(error) => crate::failure::remedy(error) != Remedy::Refused,
            Self::Later(_) | Self::Never(_) => false,
        }
    }
}
