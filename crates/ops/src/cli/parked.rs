//! What is parked, and what becomes of it.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use event::{EffectName, TenantId};

use super::Because;
use super::value::duration;

#[derive(Debug, Subcommand)]
pub(crate) enum ParkedCommand {
    /// Lists what is parked, the oldest first.
    List(Selection),
    /// Shows one parked thing, with the exact bytes if asked for.
    Show {
        /// The id of an event or task, or the number of a delivery.
        id: ParkedId,
        /// Writes the body to stdout, byte for byte, and nothing else.
        #[arg(long)]
        body: bool,
    },
}

/// Which parked things are meant.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Of this kind only.
    #[arg(long, value_enum)]
    pub(crate) kind: Option<ParkedKind>,
    /// Of this tenant only.
    #[arg(long)]
    pub(crate) tenant: Option<TenantId>,
    /// Of this effect only (deliveries).
    #[arg(long)]
    pub(crate) effect: Option<EffectName>,
    /// With this text in the reason.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Recorded or received at least so long ago.
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) older_than: Option<Duration>,
    /// So many of each kind at most.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..=10_000))]
    pub(crate) limit: i64,
}

#[derive(Debug, Args)]
pub(crate) struct Redrive {
    /// Ids of events or tasks, numbers of deliveries.
    pub(crate) ids: Vec<ParkedId>,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Everything that is parked.
    #[arg(long)]
    pub(crate) all: bool,
    /// They become due one after the other within this time.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "DURATION")]
    pub(crate) stagger: Duration,
    /// What is older is left alone: its receipts may be gone.
    #[arg(long, default_value = "14d", value_parser = duration, value_name = "DURATION")]
    pub(crate) oldest_redrive: Duration,
    /// Only says what would be sent.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Args)]
pub(crate) struct Skip {
    /// The id of an event or task, or the number of a delivery.
    pub(crate) id: ParkedId,
    /// Of this tenant, should several have used the id.
    #[arg(long)]
    pub(crate) tenant: Option<TenantId>,
    /// Why, for operator_actions.
    #[arg(long, required = true, value_name = "TEXT")]
    pub(crate) because: String,
}

/// Which kind of parked thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ParkedKind {
    /// Of the outbox: could not be published.
    Event,
    /// Of a consumer: could not be applied.
    Delivery,
    /// Of the notification effect: could not be sent to the outside.
    Task,
}

/// What a parked thing is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParkedId {
    /// An event or a task.
    Uuid(uuid::Uuid),
    /// A delivery.
    Number(i64),
}

impl std::str::FromStr for ParkedId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().map(Self::Number).ok();
        let id = || uuid::Uuid::parse_str(text).map(Self::Uuid).ok();
        number
            .or_else(id)
            .ok_or_else(|| "neither the id of an event or task nor a delivery's number".to_owned())
    }
}
