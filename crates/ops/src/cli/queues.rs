//! Pools, effects, their queues, and what is sent to them again.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use event::{EffectName, PoolName, TenantId};

use super::Because;
use super::value::{duration, moment, pattern};

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// Lists pools with their tenants and effects.
    List,
    /// Shows what is in a pool and in its queues.
    Show {
        /// Which.
        pool: PoolName,
        /// Ends 1 unless nothing is in it: no tenant, no message, no delivery that waits.
        #[arg(long)]
        idle: bool,
    },
    /// Removes a pool in which nothing is, with its queues.
    Remove {
        /// Which.
        pool: PoolName,
        /// How long to wait until nothing is in it; the broker's counts follow after some seconds.
        #[arg(long, default_value = "10s", value_parser = duration, value_name = "DURATION")]
        within: Duration,
        #[command(flatten)]
        because: Because,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Topology {
    /// Of this pool, which may be new; may be given more than once. All in use if not given.
    #[arg(long, value_name = "POOL")]
    pub(crate) pool: Vec<PoolName>,
    /// The pool whose effects one without any gets.
    #[arg(long, value_name = "POOL", default_value = "shared")]
    pub(crate) like: PoolName,
    /// Changes nothing: tells which queues are missing or not ready, and ends 1 if there are any.
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EffectCommand {
    /// Lists effects and their queues.
    List,
    /// Adds an effect to a pool; it gets the published events that are still there, too.
    Add {
        /// Its name, the last part of its queue's.
        effect: EffectName,
        /// The pool.
        #[arg(long, default_value = "shared")]
        pool: PoolName,
        /// Patterns of event types, e.g. `ticket.#`.
        #[arg(long, required = true, value_delimiter = ',', value_parser = pattern)]
        types: Vec<String>,
        #[command(flatten)]
        because: Because,
    },
    /// Makes its consumers leave its queue alone.
    Pause(EffectOfPool),
    /// Lets its consumers go on.
    Resume(EffectOfPool),
}

#[derive(Debug, Args)]
pub(crate) struct EffectOfPool {
    /// Its name.
    pub(crate) effect: EffectName,
    /// The pool; all that have it if not given.
    #[arg(long)]
    pub(crate) pool: Option<PoolName>,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The effect whose queue they go to.
    #[arg(long)]
    pub(crate) effect: EffectName,
    /// The pool they were published to.
    #[arg(long, default_value = "shared")]
    pub(crate) pool: PoolName,
    /// Of this tenant only.
    #[arg(long)]
    pub(crate) tenant: Option<TenantId>,
    /// Published from then on: a time such as 2026-11-30T12:00:00Z, or a duration ago such as 2h.
    #[arg(long, value_parser = moment, value_name = "WHEN")]
    pub(crate) from: DateTime<Utc>,
    /// Published before then; now if not given.
    #[arg(long, value_parser = moment, value_name = "WHEN")]
    pub(crate) to: Option<DateTime<Utc>>,
    /// Only those for which the effect has no receipt in this database.
    #[arg(long)]
    pub(crate) missing: bool,
    /// Only says how many there are.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}
