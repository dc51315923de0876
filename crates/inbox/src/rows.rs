//! Rows of deliveries that are not applied yet, or never will be, with the exact bytes received.

use std::time::Duration;

use deadpool_postgres::GenericClient;
use event::EffectName;
use tokio_postgres::Error;
use tokio_postgres::types::Json;

use crate::delivery::{Delivery, Readable};
use crate::outcome::{Outcome, Reason};
use crate::stored::{Properties, plain};

/// Longest detail kept; what an error says beyond it helps nobody.
const DETAIL_CHARS: usize = 2000;

/// What a row is to say about its delivery.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) state: &'static str,
    pub(crate) reason: Reason,
    pub(crate) detail: String,
    /// Whether it may still be applied.
    pub(crate) applicable: bool,
    pub(crate) attempts: i64,
    /// When it is tried next; none for what is parked.
    pub(crate) wait: Option<Duration>,
}

impl Verdict {
    /// Needs a person, who may have it applied.
    pub(crate) fn parked(reason: Reason, detail: impl Into<String>) -> Self {
        Self {
            state: "parked",
            reason,
            detail: detail.into(),
            applicable: true,
            attempts: 0,
            wait: None,
        }
    }

    /// Is kept to be looked at, and never applied.
    pub(crate) fn evidence(reason: Reason, detail: impl Into<String>) -> Self {
        Self {
            applicable: false,
            ..Self::parked(reason, detail)
        }
    }

    /// Is tried again.
    pub(crate) fn again(state: &'static str, reason: Reason, wait: Duration) -> Self {
        Self {
            state,
            reason,
            detail: String::new(),
            applicable: true,
            attempts: 0,
            wait: Some(wait),
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        match self.state {
            "deferred" => Outcome::Deferred,
            "waiting" => Outcome::Waiting,
            "suspect" => Outcome::Suspect,
            _ => Outcome::Parked(self.reason),
        }
    }

    /// The detail as it is stored.
    pub(crate) fn shown_detail(&self) -> String {
        plain(&self.detail).chars().take(DETAIL_CHARS).collect()
    }
}

/// Writes the row of a delivery. One of the same key stays, unless only this one may be applied.
pub(crate) async fn insert(
    client: &impl GenericClient,
    effect: &EffectName,
    delivery: &Delivery,
    verdict: &Verdict,
) -> Result<(), Error> {
    let partial = delivery.delivered().partial_identity();
    let event = delivery.event();
    let tenant = partial.tenant_id.as_ref().map(event::TenantId::as_str);
    let source = partial.source.as_ref().map(event::Source::as_str);
    let digest = delivery.digest().as_bytes().as_slice();
    if let (true, Some(one)) = (verdict.applicable, Readable::of(delivery)) {
        clear(client, effect, one).await?;
    }
    let statement = client
        .prepare_cached(include_str!("sql/rows_insert.sql"))
        .await?;
    let wait = verdict.wait.map(|wait| wait.as_secs_f64());
    client
        .execute(
            &statement,
            &[
                &verdict.state,
                &effect.as_str(),
                &delivery.pool().as_str(),
                &tenant,
                &source,
                &partial.event_id,
                &digest,
                &event.map(|event| event.aggregate.aggregate_type.as_str()),
                &event.map(|event| event.aggregate.aggregate_id.as_str()),
                &event.and_then(|event| event.version),
                &event.and_then(|event| event.previous_version),
                &event.map(|event| event.event_type.as_str()),
                &verdict.reason.as_str(),
                &verdict.shown_detail(),
                &verdict.applicable,
                &verdict.attempts,
                &wait,
                &plain(&delivery.delivered().routing_key),
                &Json(Properties::of(delivery.delivered())),
                &delivery.delivered().body.as_ref(),
            ],
        )
        .await?;
    Ok(())
}

/// Deletes rows that a receipt now stands for.
pub(crate) async fn delete(client: &impl GenericClient, rows: &[i64]) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let statement = client
        .prepare_cached(include_str!("sql/rows_delete.sql"))
        .await?;
    client.execute(&statement, &[&rows]).await?;
    Ok(())
}

async fn clear(
    client: &impl GenericClient,
    effect: &EffectName,
    one: Readable<'_>,
) -> Result<(), Error> {
    let identity = one.identity();
    let statement = client
        .prepare_cached(include_str!("sql/rows_clear.sql"))
        .await?;
    client
        .execute(
            &statement,
            &[
                &identity.tenant_id.as_str(),
                &identity.source.as_str(),
                &identity.event_id,
                &effect.as_str(),
                &one.digest.as_bytes().as_slice(),
            ],
        )
        .await?;
    Ok(())
}
