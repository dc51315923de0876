//! Effects outside the database: the delivery loop between a written task and a foreign system.
//!
//! A receipt says that an event was *processed*. Whether the outside was told is another question,
//! with a protocol of its own, since no transaction spans the two:
//!
//! 1. **Claim.** Due tasks become `sending` under a fresh lease token, `attempts` counted up, and
//!    that is committed before anything goes out: whoever finds the row later knows that a request
//!    may have been made.
//! 2. **Send.** A [`Provider`] makes one request with the task's id as the idempotency key. What
//!    came of it is an [`Outcome`]: `Delivered`, `Refused`, `Failed` (surely not taken) or
//!    `Unknown` (perhaps taken: the answer was lost).
//! 3. **Settle.** Fenced by the token: a row that has been claimed anew in the meantime is left
//!    alone and counted.
//!
//! A task of unknown outcome, also one whose lease ran out while it was `sending`, is *in doubt*: the
//! provider is asked for its key first, if it can be asked; else the task is sent again under the
//! same key, and the provider's own idempotency makes that harmless. Doubt ends with an answer to
//! that key, never with time.
//!
//! Each endpoint has a loop of its own with its own rate, circuit and share of requests in flight,
//! so that a dead or slow one holds up nobody else. Within an endpoint tenants take turns. All times
//! are the database's; a process's own clock only measures how long something took.

mod attempt;
mod circuit;
mod claim;
mod config;
mod cycle;
mod decide;
mod endpoint;
mod gauges;
pub mod measures;
mod mutant;
pub mod operate;
mod pace;
pub mod provider;
mod run;
mod settings;
mod settle;
mod task;
mod worker;

pub use config::Config;
pub use decide::{ParkedReason, Policy};
pub use endpoint::{Endpoint, Tenants};
pub use provider::{Knowledge, Outcome, Provider, Whose};
pub use run::run;
pub use settings::{SETTINGS, check};
pub use task::Task;
