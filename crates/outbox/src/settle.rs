//! The settle: one transaction for a batch, fenced by the lease's token.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::batch::Settling;
use crate::error::OutboxError;
use crate::feed::{DoneHead, feed};
use crate::key::{LaneKey, arrays};
use crate::mutant;
use crate::pools;
use crate::row::ClaimedEvent;
use crate::settlement::Settlement;
use crate::statement;

/// What became of the events of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settled {
    /// Marked as published.
    pub published: u64,
    /// Back as they were.
    pub released: u64,
    /// Waiting to be tried again.
    pub retried: u64,
    /// Waiting for a person.
    pub parked: u64,
    /// Left alone, since their lane had been lost.
    pub lease_lost: u64,
    /// Confirmed, but for queues of another generation: released.
    pub stale: u64,
}

/// Settles a batch. Rows of lanes that are not ours any more are left alone and counted.
///
/// # Errors
/// [`OutboxError`] of the database; nothing is settled then.
pub async fn settle(
    transaction: &Transaction<'_>,
    settling: &Settling,
) -> Result<Settled, OutboxError> {
    let (tenants, lanes) = arrays(settling.lanes());
    let token = settling.token().uuid();
    let values: [&(dyn ToSql + Sync); 3] = [&tenants, &lanes, &token];
    let text = include_str!("sql/lock_lanes.sql");
    let (own, any) = ("l.lease_token = $3", "$3::uuid is not null");
    let text = mutant::bent(mutant::SETTLE_WITHOUT_TOKEN, text, own, any);
    let (set_up, locked) = futures_util::future::join(
        statement::set_up(transaction),
        statement::rows(transaction, &text, &values),
    )
    .await;
    set_up?;
    let mut held = HashSet::new();
    for row in locked? {
        held.insert(LaneKey {
            tenant_id: row.try_get("tenant_id")?,
            lane: row.try_get("lane")?,
        });
    }
    let stale = stale_pools(transaction, settling).await?;
    let sorted = sort(settling, &held, &stale);
    let settled = sorted.write(transaction).await?;
    if settling.has_holds() {
        feed(transaction, &sorted.done_heads()).await?;
    }
    if settling.gives_back() {
        let values: [&(dyn ToSql + Sync); 4] = [&tenants, &lanes, &token, &true];
        statement::changed(transaction, include_str!("sql/give_back.sql"), &values).await?;
    }
    Ok(settled)
}

/// The pools of which a queue is not in the generation any more that was claimed for. The rest are
/// kept as they are to the end of the transaction: whoever makes a queue anew comes after it, and
/// finds what was published here.
async fn stale_pools(
    transaction: &Transaction<'_>,
    settling: &Settling,
) -> Result<BTreeSet<String>, OutboxError> {
    let published: BTreeSet<&str> = settling
        .verdicts()
        .filter(|(_, settlement)| settlement.is_published())
        .map(|(event, _)| event.pool.as_str())
        .collect();
    if published.is_empty() || mutant::is_planted(mutant::NO_GENERATIONS) {
        return Ok(BTreeSet::new());
    }
    let names: Vec<&str> = published.into_iter().collect();
    let now = pools::lock(transaction, &names).await?;
    let claimed = settling.generations();
    let is_same = |name: &str| {
        let now = now.iter().find(|(pool, _)| pool.as_str() == name);
        now.is_some_and(|(pool, queues)| {
            queues.is_ready && claimed.get(pool) == Some(&queues.generations)
        })
    };
    Ok(names
        .into_iter()
        .filter(|name| !is_same(name))
        .map(str::to_owned)
        .collect())
}

/// The events of a batch by what is written for them.
#[derive(Default)]
struct Sorted<'a> {
    published: Vec<&'a ClaimedEvent>,
    answered: Vec<(&'a ClaimedEvent, &'a str)>,
    retried: Vec<(&'a ClaimedEvent, &'a str, f64)>,
    parked: Vec<(&'a ClaimedEvent, &'a str)>,
    counts: Settled,
}

fn sort<'a>(
    settling: &'a Settling,
    held: &HashSet<LaneKey>,
    stale: &BTreeSet<String>,
) -> Sorted<'a> {
    let mut sorted = Sorted::default();
    for (event, settlement) in settling.verdicts() {
        if !held.contains(&event.lane) {
            sorted.counts.lease_lost += 1;
            continue;
        }
        match settlement {
            Settlement::Published if stale.contains(event.pool.as_str()) => {
                sorted.counts.stale += 1;
            }
            Settlement::Published => sorted.published.push(event),
            Settlement::Released { answer } => {
                sorted.counts.released += 1;
                sorted
                    .answered
                    .extend(answer.as_deref().map(|answer| (event, answer)));
            }
            Settlement::Retried { delay, reason } => {
                sorted.retried.push((event, reason, delay.as_secs_f64()));
            }
            Settlement::Parked { reason } => sorted.parked.push((event, reason)),
        }
    }
    sorted
}

impl Sorted<'_> {
    async fn write(&self, transaction: &Transaction<'_>) -> Result<Settled, OutboxError> {
        let mut settled = self.counts;
        let mut of_pool: BTreeMap<&str, Vec<&ClaimedEvent>> = BTreeMap::new();
        for event in &self.published {
            of_pool.entry(event.pool.as_str()).or_default().push(event);
        }
        for (pool, events) in of_pool {
            let keys = Keys::of(events.into_iter().map(|event| (event, pool)));
            let values: [&(dyn ToSql + Sync); 6] = [
                &keys.ids,
                &keys.tenants,
                &keys.sources,
                &pool,
                &keys.least,
                &keys.most,
            ];
            let text = include_str!("sql/publish.sql");
            settled.published += statement::changed(transaction, text, &values).await?;
        }
        if !self.answered.is_empty() {
            let keys = Keys::of(self.answered.iter().copied());
            let text = include_str!("sql/release.sql");
            statement::changed(transaction, text, &keys.values()).await?;
        }
        if !self.retried.is_empty() {
            let keys = Keys::of(
                self.retried
                    .iter()
                    .map(|(event, reason, _)| (*event, *reason)),
            );
            let delays: Vec<f64> = self.retried.iter().map(|(.., delay)| *delay).collect();
            let mut values = keys.values().to_vec();
            values.push(&delays);
            settled.retried = count(transaction, include_str!("sql/retry.sql"), &values).await?;
        }
        if !self.parked.is_empty() {
            let keys = Keys::of(self.parked.iter().copied());
            let text = include_str!("sql/park.sql");
            settled.parked = count(transaction, text, &keys.values()).await?;
        }
        Ok(settled)
    }

    fn done_heads(&self) -> Vec<DoneHead<'_>> {
        let ordered = self.published.iter().filter(|event| event.is_ordered);
        let mut heads: Vec<DoneHead<'_>> = ordered
            .map(|event| DoneHead {
                tenant_id: &event.key.tenant_id,
                aggregate_type: &event.aggregate.0,
                aggregate_id: &event.aggregate.1,
                position: event.position,
            })
            .collect();
        // The last of each aggregate: what comes before it is done as well.
        heads.sort_by(|a, b| {
            a.aggregate()
                .cmp(&b.aggregate())
                .then(b.position.cmp(&a.position))
        });
        heads.dedup_by(|a, b| a.aggregate() == b.aggregate());
        heads
    }
}

async fn count(
    transaction: &Transaction<'_>,
    text: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<u64, OutboxError> {
    let rows = statement::rows(transaction, text, values).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Keys as arrays, each with its pool or reason, and the bounds of their ids.
struct Keys<'a> {
    ids: Vec<Uuid>,
    tenants: Vec<&'a str>,
    sources: Vec<&'a str>,
    texts: Vec<&'a str>,
    least: Uuid,
    most: Uuid,
}

impl<'a> Keys<'a> {
    fn of(events: impl Iterator<Item = (&'a ClaimedEvent, &'a str)>) -> Self {
        let mut keys = Self {
            ids: Vec::new(),
            tenants: Vec::new(),
            sources: Vec::new(),
            texts: Vec::new(),
            least: Uuid::max(),
            most: Uuid::nil(),
        };
        for (event, text) in events {
            let key = &event.key;
            keys.ids.push(key.event_id);
            keys.tenants.push(&key.tenant_id);
            keys.sources.push(&key.source);
            keys.texts.push(text);
            keys.least = keys.least.min(key.event_id);
            keys.most = keys.most.max(key.event_id);
        }
        keys
    }

    fn values(&self) -> [&(dyn ToSql + Sync); 6] {
        [
            &self.ids,
            &self.tenants,
            &self.sources,
            &self.texts,
            &self.least,
            &self.most,
        ]
    }
}
