//! Retention and checks.

use std::time::Duration;

use clap::Args;

use super::Because;
use super::value::{days, duration};

#[derive(Debug, Args)]
pub(crate) struct Retention {
    /// How long published and skipped events are kept.
    #[arg(long, default_value = "14d", value_parser = days, value_name = "DURATION")]
    pub(crate) outbox_retention: Duration,
    /// How long receipts are kept: what is older can no longer be told from a duplicate.
    #[arg(long, default_value = "35d", value_parser = days, value_name = "DURATION")]
    pub(crate) dedup_window: Duration,
    /// How far ahead an event may be delayed.
    #[arg(long, default_value = "7d", value_parser = duration, value_name = "DURATION")]
    pub(crate) max_delay: Duration,
    /// After which time of refusals an event is parked.
    #[arg(long, default_value = "24h", value_parser = duration, value_name = "DURATION")]
    pub(crate) park_after: Duration,
    /// The oldest event that is ever redriven or replayed.
    #[arg(long, default_value = "14d", value_parser = duration, value_name = "DURATION")]
    pub(crate) oldest_redrive: Duration,
    /// The longest a message waits in a queue.
    #[arg(long, default_value = "7d", value_parser = duration, value_name = "DURATION")]
    pub(crate) max_queue_time: Duration,
    /// Only says what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// From which age on the oldest due event is a problem.
    #[arg(long, default_value = "1m", value_parser = duration, value_name = "DURATION")]
    pub(crate) due_age: Duration,
    /// Lets events go that are held without a hold.
    #[arg(long)]
    pub(crate) repair: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}
