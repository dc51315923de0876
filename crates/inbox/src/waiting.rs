//! How long an event waits for those before it: for as long as one of them may still come, and
//! `order_wait` beyond.

use deadpool_postgres::Transaction;
use event::{EffectName, Event};
use tokio_postgres::Error;

use crate::order::Heads;
use crate::policy::Policy;
use crate::retry::Kept;

/// Whether an event has to wait on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Something before it may still be applied: its wait has not even begun.
    Blocked,
    /// Nothing is known to come, but it has not waited long enough.
    Runs,
    /// It has waited long enough for what nobody knows of.
    Over,
}

/// Looks, under the head's lock, whether a row has to wait on.
pub(crate) async fn look(
    transaction: &Transaction<'_>,
    effect: &EffectName,
    (kept, event): (&Kept, &Event),
    (heads, policy): (&Heads<'_>, &Policy),
) -> Result<Wait, Error> {
    let head = heads.found(event);
    let version = event.version.unwrap_or_default();
    let name = effect.as_str();
    let tenant = event.identity.tenant_id.as_str();
    let kind = event.aggregate.aggregate_type.as_str();
    let id = event.aggregate.aggregate_id.as_str();
    let statement = transaction
        .prepare_cached(include_str!("sql/order_waits.sql"))
        .await?;
    let row = transaction
        .query_one(
            &statement,
            &[
                &name,
                &tenant,
                &kind,
                &id,
                &head,
                &version,
                &kept.due.delivery_id,
                &policy.order_wait.as_secs_f64(),
            ],
        )
        .await?;
    if row.try_get("blocked")? {
        return Ok(Wait::Blocked);
    }
    let waited: Option<bool> = row.try_get("waited")?;
    if waited != Some(true) {
        return Ok(Wait::Runs);
    }
    let statement = transaction
        .prepare_cached(include_str!("sql/order_published.sql"))
        .await?;
    let row = transaction
        .query_one(
            &statement,
            &[
                &name,
                &tenant,
                &kind,
                &id,
                &head,
                &version,
                &event.identity.event_id,
            ],
        )
        .await?;
    let coming: bool = row.try_get("coming")?;
    Ok(if coming { Wait::Blocked } else { Wait::Over })
}
