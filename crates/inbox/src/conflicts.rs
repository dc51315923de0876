//! Two contents of one identity: found before the effect where a row waits, and after the commit
//! wherever else; always noted.

use deadpool_postgres::{GenericClient, Object};
use event::EffectName;
use tokio_postgres::Error;

use crate::delivery::Readable;
use crate::lent::Failure;
use crate::mutant;
use crate::outcome::{Outcome, Reason};
use crate::receipts::Keys;
use crate::rows::{self, Verdict};

/// The counter of identities that came with two contents, by effect.
pub const CONFLICTS: &str = "consumer_event_conflicts_total";

/// Another content of the same identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) effect: String,
    pub(crate) digest: Vec<u8>,
}

/// Looks, after the commit, whether any effect knows another content of these identities; notes
/// it, and parks what was taken for a duplicate of it.
pub(crate) async fn look(
    client: &mut Object,
    effect: &EffectName,
    set: &[Readable<'_>],
    outcomes: &mut [Outcome],
) -> Result<(), Failure> {
    let found = read(client, set).await?;
    if found.is_empty() || mutant::is_planted(mutant::NO_CONFLICTS) {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    for (place, other) in found {
        let (Some(one), Some(outcome)) = (set.get(place), outcomes.get_mut(place)) else {
            continue;
        };
        note(&transaction, effect, *one, &other).await?;
        if other.effect == effect.as_str() && *outcome == Outcome::Duplicate {
            rows::insert(&transaction, effect, one.delivery, &verdict()).await?;
            *outcome = Outcome::Parked(Reason::Conflict);
        }
    }
    transaction.commit().await?;
    Ok(())
}

/// What the row of a conflicting delivery says.
pub(crate) fn verdict() -> Verdict {
    Verdict::evidence(
        Reason::Conflict,
        "another content of the same identity came first",
    )
}

/// Keeps the evidence, once.
pub(crate) async fn note(
    client: &impl GenericClient,
    effect: &EffectName,
    one: Readable<'_>,
    other: &Other,
) -> Result<(), Error> {
    let identity = one.identity();
    let statement = client
        .prepare_cached(include_str!("sql/conflicts_note.sql"))
        .await?;
    let fresh = client
        .execute(
            &statement,
            &[
                &identity.tenant_id.as_str(),
                &identity.source.as_str(),
                &identity.event_id,
                &effect.as_str(),
                &one.digest.as_bytes().as_slice(),
                &other.digest,
                &other.effect,
                &crate::stored::plain(&one.delivery.delivered().routing_key),
            ],
        )
        .await?;
    if fresh > 0 {
        metrics::counter!(CONFLICTS, "effect" => effect.to_string()).increment(1);
        tracing::error!(
            event.id = %identity.event_id,
            tenant.id = %identity.tenant_id,
            effect = %effect,
            first.effect = %other.effect,
            "two contents of one event: the first stands"
        );
    }
    Ok(())
}

async fn read(client: &Object, set: &[Readable<'_>]) -> Result<Vec<(usize, Other)>, Error> {
    let keys = Keys::of(set.iter().copied());
    let (low, high) = keys.bounds();
    let statement = client
        .prepare_cached(include_str!("sql/conflicts_look.sql"))
        .await?;
    let rows = client
        .query(
            &statement,
            &[
                &keys.ids,
                &keys.tenants,
                &keys.sources,
                &keys.digests,
                &low,
                &high,
            ],
        )
        .await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let place: i64 = row.try_get(0)?;
        let other = Other {
            effect: row.try_get(1)?,
            digest: row.try_get(2)?,
        };
        found.push((usize::try_from(place - 1).unwrap_or(usize::MAX), other));
    }
    Ok(found)
}
