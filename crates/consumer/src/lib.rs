//! The consumer: effects of delivered events, each exactly once.
//!
//! For each effect of each pool there is a queue, a channel, a prefetch and a task
//! (`subscription` decides when to take a batch, `cycle` what it goes through): read,
//! applied by [`inbox`] in one transaction, acknowledged after the commit. What could not be
//! applied waits in a row and is tried from there (`retries`). Dead letters of a pool are
//! kept as suspects and tried alone. While the database is away a batch is held: nothing is
//! acknowledged, nothing more is taken.

mod config;
mod cycle;
pub mod effects;
mod health;
mod housekeeping;
mod marks;
mod metrics;
mod nobodys;
mod pauses;
mod prefetch;
mod prepare;
mod retries;
mod run;
mod shared;
mod subscription;
mod window;

pub use config::{Config, PROCESS};
pub use metrics::METRICS;
pub use prefetch::Prefetch;
pub use prepare::PrepareError;
pub use run::{ConsumerError, run, run_and_tell, run_effects};
pub use window::Window;
