//! The stand-in for an effect that this process does not apply: its dead letters are kept for
//! those who do.

use deadpool_postgres::Transaction;
use event::EffectName;
use futures_util::future::BoxFuture;
use inbox::{Applicable, Effect, Refusal};

/// An effect of another process, or of none.
#[derive(Debug)]
pub(crate) struct Nobodys {
    name: EffectName,
}

impl Nobodys {
    pub(crate) fn new(name: Option<EffectName>) -> Self {
        Self {
            name: name.unwrap_or_else(|| crate::effects::named("unknown")),
        }
    }
}

impl Effect for Nobodys {
    fn name(&self) -> &EffectName {
        &self.name
    }

    fn event_types(&self) -> &[&'static str] {
        &[]
    }

    fn apply<'a>(
        &'a self,
        _: &'a Transaction<'_>,
        _: &'a [Applicable<'a>],
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        let why = format!("no process here applies {}", self.name);
        Box::pin(async { Err(Refusal::Later(why)) })
    }
}
