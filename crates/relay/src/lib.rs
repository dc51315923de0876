//! The relay: when to run a cycle, and what a cycle does: claim, publish, settle.
//!
//! A *worker* (`worker`) waits for a channel, then for work. Workers look for work in turns
//! (`scout`), so that an idle process asks the database once and not once a worker. What was
//! claimed goes through a *cycle* ([`Cycle`]): its events go out in *waves* (`waves`), at most
//! one unconfirmed event per aggregate at a time, on a channel that one task owns
//! (`publishing`); [`decide()`] turns each outcome into a settlement; the settle is fenced by
//! the lease's token, and runs while the next batch is claimed and published.
//!
//! Leases are renewed by a task and a connection of their own (`leases`); whoever could not
//! renew publishes nothing more. A pool whose destination refuses gets a circuit (`circuit`):
//! one probe at a time instead of a flood of copies. While the broker is away or blocks, nothing is
//! claimed and nothing is spent. Claims that ended unsettled twice are published one by one, each
//! try written down first (`suspect`).

mod circuit;
mod config;
mod crash;
mod cycle;
mod decide;
mod health;
mod hint;
mod housekeeping;
mod leases;
mod metrics;
mod observe;
mod pace;
mod publishing;
mod run;
mod scout;
mod settling;
mod store;
mod suspect;
mod verdicts;
mod verify;
mod waves;
mod worker;

pub use circuit::{Circuits, Probe};
pub use config::{Config, PROCESS};
pub use cycle::{Cycle, Report};
pub use decide::{Attempt, Fault, Policy, decide, fault};
pub use leases::{Lease, Leases};
pub use metrics::METRICS;
pub use publishing::{Leave, Published, Sender};
pub use run::{RelayError, run, run_and_tell};
pub use settling::Settler;
pub use store::{PgStore, Store, StoreError};
pub use verify::Verify;
