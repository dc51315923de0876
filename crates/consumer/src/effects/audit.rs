//! The audit effect: what happened, in the order in which it happened to each aggregate.

use deadpool_postgres::Transaction;
use event::EffectName;
use futures_util::future::BoxFuture;
use inbox::{Applicable, Effect, Place, Refusal};

use super::named;

/// Appends a row to `audit_entries` for every event of its pool.
#[derive(Debug)]
pub struct Audit {
    name: EffectName,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            name: named("audit"),
        }
    }
}

impl Effect for Audit {
    fn name(&self) -> &EffectName {
        &self.name
    }

    fn event_types(&self) -> &[&'static str] {
        &["#"]
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn apply<'a>(
        &'a self,
        transaction: &'a Transaction<'_>,
        events: &'a [Applicable<'a>],
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(write(transaction, events))
    }
}

async fn write(transaction: &Transaction<'_>, events: &[Applicable<'_>]) -> Result<(), Refusal> {
    let all = || events.iter().map(|one| one.event);
    let tenants: Vec<_> = all()
        .map(|event| event.identity.tenant_id.as_str())
        .collect();
    let kinds: Vec<_> = all()
        .map(|event| event.aggregate.aggregate_type.as_str())
        .collect();
    let aggregates: Vec<_> = all()
        .map(|event| event.aggregate.aggregate_id.as_str())
        .collect();
    let versions: Vec<_> = all().map(|event| event.version).collect();
    let ids: Vec<_> = all().map(|event| event.identity.event_id).collect();
    let sources: Vec<_> = all().map(|event| event.identity.source.as_str()).collect();
    let types: Vec<_> = all().map(|event| event.event_type.as_str()).collect();
    let digests: Vec<_> = events
        .iter()
        .map(|one| one.digest.as_bytes().as_slice())
        .collect();
    let times: Vec<_> = all().map(|event| event.occurred_at).collect();
    let late: Vec<_> = events.iter().map(|one| one.place == Place::Late).collect();
    let gap: Vec<_> = events
        .iter()
        .map(|one| one.place == Place::AfterGap)
        .collect();
    let statement = transaction
        .prepare_cached(include_str!("../sql/audit.sql"))
        .await?;
    transaction
        .execute(
            &statement,
            &[
                &tenants,
                &kinds,
                &aggregates,
                &versions,
                &ids,
                &sources,
                &types,
                &digests,
                &times,
                &late,
                &gap,
            ],
        )
        .await?;
    Ok(())
}
