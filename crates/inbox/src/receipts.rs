//! Receipts: one row for each effect of each event, locked in key order.

use std::collections::HashSet;

use deadpool_postgres::Transaction;
use event::EffectName;
use tokio_postgres::Error;
use uuid::Uuid;

use crate::delivery::Readable;
use crate::mutant;

/// The keys of a set as arrays, in key order.
pub(crate) struct Keys<'a> {
    pub(crate) ids: Vec<Uuid>,
    pub(crate) tenants: Vec<&'a str>,
    pub(crate) sources: Vec<&'a str>,
    pub(crate) digests: Vec<&'a [u8]>,
}

impl<'a> Keys<'a> {
    /// Of a set that is in key order.
    pub(crate) fn of(set: impl Iterator<Item = Readable<'a>> + Clone) -> Self {
        Self {
            ids: set.clone().map(|one| one.identity().event_id).collect(),
            tenants: set
                .clone()
                .map(|one| one.identity().tenant_id.as_str())
                .collect(),
            sources: set
                .clone()
                .map(|one| one.identity().source.as_str())
                .collect(),
            digests: set.map(|one| one.digest.as_bytes().as_slice()).collect(),
        }
    }

    /// The lowest and the highest id: with them a statement touches only their partitions.
    pub(crate) fn bounds(&self) -> (Uuid, Uuid) {
        let low = self.ids.iter().min().copied().unwrap_or(Uuid::nil());
        let high = self.ids.iter().max().copied().unwrap_or(Uuid::max());
        (low, high)
    }
}

/// Writes the receipts and says, for each of the set, whether it was new.
pub(crate) async fn insert(
    transaction: &Transaction<'_>,
    effect: &EffectName,
    set: &[Readable<'_>],
) -> Result<Vec<bool>, Error> {
    let keys = Keys::of(set.iter().copied());
    let text = include_str!("sql/receipts_insert.sql");
    let text = mutant::bent(
        mutant::RECEIPT_OF_EVENT,
        text,
        "$5::text",
        "left($5::text, 0) || 'any'",
    );
    let text = match mutant::is_planted(mutant::NO_NAMESPACE) {
        true => text
            .replace(
                "given.event_id, given.tenant_id, given.source, $5",
                "given.event_id, 'any', 'any', $5",
            )
            .into(),
        false => text,
    };
    let statement = transaction.prepare_cached(&text).await?;
    let rows = transaction
        .query(
            &statement,
            &[
                &keys.ids,
                &keys.tenants,
                &keys.sources,
                &keys.digests,
                &effect.as_str(),
            ],
        )
        .await?;
    let never = mutant::is_planted(mutant::NEVER_DUPLICATE);
    if rows.len() == set.len() || never {
        return Ok(vec![true; set.len()]);
    }
    let mut written: HashSet<(Uuid, &str, &str)> = HashSet::with_capacity(rows.len());
    for row in &rows {
        written.insert((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
    }
    Ok(set.iter().map(|one| written.contains(&one.key())).collect())
}

/// Takes back receipts written by this transaction.
pub(crate) async fn delete(
    transaction: &Transaction<'_>,
    effect: &EffectName,
    set: &[Readable<'_>],
) -> Result<(), Error> {
    if set.is_empty() {
        return Ok(());
    }
    let keys = Keys::of(set.iter().copied());
    let (low, high) = keys.bounds();
    let statement = transaction
        .prepare_cached(include_str!("sql/receipts_delete.sql"))
        .await?;
    transaction
        .execute(
            &statement,
            &[
                &keys.ids,
                &keys.tenants,
                &keys.sources,
                &effect.as_str(),
                &low,
                &high,
            ],
        )
        .await?;
    Ok(())
}
