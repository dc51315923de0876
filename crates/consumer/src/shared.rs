//! What the tasks of a consumer share.

use std::sync::Arc;

use broker::Broker;
use event::PoolName;
use inbox::{Effect, Inbox};
use runtime::database::Database;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::health::Health;
use crate::pauses::Paused;

/// What the tasks of a consumer share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) effects: Vec<Arc<dyn Effect>>,
    pub(crate) inbox: Inbox,
    pub(crate) database: Database,
    pub(crate) broker: Broker,
    pub(crate) health: Health,
    pub(crate) paused: watch::Receiver<Paused>,
    /// Rings when a row may have become due.
    pub(crate) rows: Notify,
    pub(crate) stop: CancellationToken,
    /// Whether the last stop was not clean.
    pub(crate) careful: bool,
}

impl Shared {
    /// The effect of this name, if this process applies it.
    pub(crate) fn effect(&self, name: &str) -> Option<&Arc<dyn Effect>> {
        self.effects
            .iter()
            .find(|effect| effect.name().as_str() == name)
    }

    /// Whether an effect of a pool is paused now.
    pub(crate) fn is_paused(&self, pool: &PoolName, effect: &str) -> bool {
        self.paused
            .borrow()
            .contains(&(pool.to_string(), effect.to_owned()))
    }
}
