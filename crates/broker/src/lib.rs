//! RabbitMQ as TicketFlow uses it; the only crate that names lapin.
//!
//! - [`Broker`] keeps one connection up and says what it is like ([`LinkState`]). lapin's own
//!   recovery stays off, since it can hang for good; whatever breaks is dropped and made anew.
//! - [`ConfirmingPublisher`] owns a channel in confirm mode and answers for each message of a
//!   *wave* with a [`PublishOutcome`]. It is given up to publish and handed back only if it can be
//!   used again, so a channel in doubt cannot be published on.
//! - [`EffectQueue`] and its neighbours declare, look at and delete queues.
//! - [`Deliveries`] hands out one [`Batch`] at a time; a batch is given up to acknowledge it.
//! - Below the client sits a guard that puts right, frame by frame, what would abort the process
//!   or break the connection again and again: headers nested a thousand deep, names not in UTF-8.
//!
//! Every call has a time-out. lapin logs at `error` on every lost connection and prints returned
//! messages with their payload at `warn`: processes keep its target off (`lapin=off`) and rely on
//! what this crate logs, which is changes of state only.

mod address;
mod batch;
mod broker;
mod decode;
mod deliveries;
mod encode;
mod error;
mod guard;
mod judge;
mod kept;
mod line;
mod link;
mod mutant;
mod options;
mod outcome;
mod publish;
mod publisher;
mod queues;
#[cfg(feature = "raw")]
mod raw;
#[cfg(feature = "scripted")]
mod scripted;
mod tame;

pub use address::{InvalidAddress, check_address};
pub use batch::{Batch, BatchLimits};
pub use broker::Broker;
pub use decode::Death;
pub use deliveries::{Deliveries, Ended, Received};
pub use error::{BrokerError, Closed, Level};
pub use kept::restore;
pub use link::LinkState;
pub use options::{ConnectOptions, Retry};
pub use outcome::{Doubt, PublishOutcome, Refusal};
pub use publish::{Publish, Publishers, Route, Wave};
pub use publisher::ConfirmingPublisher;
pub use queues::{DeclareError, EffectQueue, Look};
#[cfg(feature = "raw")]
pub use raw::{Encoded, RawPublisher};
#[cfg(feature = "scripted")]
pub use scripted::{ScriptedBroker, ScriptedPublisher, SentWave};
