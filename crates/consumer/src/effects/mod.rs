//! The effects of ticket events: each has its own queue, receipts and failures.

mod audit;
mod notification;
mod search;
mod ticket;

use std::sync::Arc;

use inbox::Effect;

pub use audit::Audit;
pub use notification::Notification;
pub use search::Search;

/// The names of the effects that this process can apply.
pub const NAMES: [&str; 3] = ["notification", "search", "audit"];

/// An effect by its name.
#[must_use]
pub fn by_name(name: &str) -> Option<Arc<dyn Effect>> {
    match name {
        "notification" => Some(Arc::new(Notification::default())),
        "search" => Some(Arc::new(Search::default())),
        "audit" => Some(Arc::new(Audit::default())),
        _ => None,
    }
}

/// The name of an effect that is known to be valid when this is written.
pub(crate) fn named(name: &str) -> event::EffectName {
    match event::EffectName::parse(name) {
        Ok(name) => name,
        Err(error) => unreachable!("{error}"),
    }
}
