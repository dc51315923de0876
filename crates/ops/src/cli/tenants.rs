//! Tenants and their keys.

use std::time::Duration;

use clap::{Args, Subcommand};
use event::{PoolName, TenantId};

use super::Because;
use super::value::duration;

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Adds a tenant.
    Add(AddTenant),
    /// Lists the tenants.
    List,
    /// Shows a tenant: backlog, keys, lanes.
    Show {
        /// Which.
        tenant: TenantId,
    },
    /// Stops publishing its events; it still records them.
    Pause {
        /// Which.
        tenant: TenantId,
        #[command(flatten)]
        because: Because,
    },
    /// Publishes its events again.
    Resume {
        /// Which.
        tenant: TenantId,
        #[command(flatten)]
        because: Because,
    },
    /// Moves it to another pool, while it is in use.
    Move(Move),
    /// Makes a key for the HTTP API and prints it, this once; or lists, revokes, expires keys.
    Key(Key),
}

#[derive(Debug, Args)]
pub(crate) struct AddTenant {
    /// Its id: a-z, 0-9, '_' and '-'.
    pub(crate) tenant: TenantId,
    /// The pool whose queues and processes serve it.
    #[arg(long, default_value = "shared")]
    pub(crate) pool: PoolName,
    /// HTTP requests a second; the producer's setting if not given.
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..=1_000_000))]
    pub(crate) rate: Option<i32>,
    /// HTTP requests at once; the producer's setting if not given.
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..=1_000_000))]
    pub(crate) burst: Option<i32>,
    /// Ends well if the tenant is there already, in this pool.
    #[arg(long)]
    pub(crate) if_missing: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Args)]
pub(crate) struct Move {
    /// Which.
    pub(crate) tenant: TenantId,
    /// Where to.
    #[arg(long)]
    pub(crate) pool: PoolName,
    /// How long to wait for consumers of the pool, and for relays to give the lanes back.
    #[arg(long, default_value = "60s", value_parser = duration, value_name = "DURATION")]
    pub(crate) within: Duration,
    /// Moves it even if no consumer is subscribed to the pool's queues, or nobody can tell.
    #[arg(long)]
    pub(crate) without_consumers: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Args)]
pub(crate) struct Key {
    /// Whose.
    pub(crate) tenant: TenantId,
    /// Lists the tenant's keys instead of making one.
    #[arg(long, conflicts_with_all = ["revoke", "expire"])]
    pub(crate) list: bool,
    /// Ends this key now (its id, or the key itself).
    #[arg(long, value_name = "KEY", conflicts_with = "expire")]
    pub(crate) revoke: Option<String>,
    /// Ends this key after --after (its id, or the key itself).
    #[arg(long, value_name = "KEY")]
    pub(crate) expire: Option<String>,
    /// How long a new key is valid (for ever if not given), or until the named one expires.
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) after: Option<Duration>,
    /// What the new key is for.
    #[arg(long, default_value = "")]
    pub(crate) label: String,
    #[command(flatten)]
    pub(crate) because: Because,
}
