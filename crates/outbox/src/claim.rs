//! The claim: walk, lease, read, in one short transaction without any broker I/O.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use deadpool_postgres::Transaction;
use event::PoolName;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::batch::{ClaimedBatch, Parts};
use crate::error::OutboxError;
use crate::key::{EventKey, LaneKey, LeaseToken, arrays};
use crate::mutant;
use crate::pools::PoolQueues;
use crate::row::{ClaimedEvent, column};
use crate::statement;
use crate::walk::{Resume, Walk, whole};

/// From how many claims of a lane that ended unsettled its events are published one by one.
const SUSPECT_AFTER: i64 = 2;

/// What a claim by watermark would ask; see [`mutant::WATERMARK_CLAIM`].
const WATERMARK: &str = "and e.state = 'pending' and not e.held and e.position > (\
    select coalesce(max(position), 0) from ticketflow.outbox_events where state = 'published')";

/// What is asked of a claim.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The pools to take events of; all when left out. One whose queues are not ready is passed over.
    pub pools: Option<Vec<PoolName>>,
    /// Pools that take nothing now.
    pub except: Vec<PoolName>,
    /// The process, shown in the lanes it has leased.
    pub owner: String,
    /// How long the lease holds.
    pub lease: Duration,
    /// Most lanes.
    pub lanes: usize,
    /// Most events.
    pub events: usize,
    /// Most bytes of payload; the first event is taken whatever its size.
    pub bytes: usize,
}

/// What a claim came to.
#[derive(Debug)]
pub struct Claimed {
    /// What was claimed, if there was anything.
    pub batch: Option<ClaimedBatch>,
    /// Where the next walk begins.
    pub resume: Resume,
}

/// Claims a batch.
///
/// # Errors
/// [`OutboxError`] of the database; nothing is leased then.
pub async fn claim(
    transaction: &Transaction<'_>,
    request: &ClaimRequest,
    resume: &Resume,
) -> Result<Claimed, OutboxError> {
    let (set_up, queues) = futures_util::future::join(
        statement::set_up(transaction),
        crate::pools::pools(transaction, request.pools.as_deref()),
    )
    .await;
    let latest = latest(transaction, set_up?).await?;
    let queues = open(queues?, &request.except);
    let served: Vec<&str> = queues.keys().map(PoolName::as_str).collect();
    let walk = Walk {
        transaction,
        served: &served,
        latest,
    };
    let found = walk.round(request.lanes, resume).await?;
    let work = Work {
        transaction,
        request,
        queues,
        latest,
    };
    Ok(Claimed {
        batch: work.take(&found.free).await?,
        resume: found.resume,
    })
}

/// The latest id to look for. Recording refuses ids from more than a day ahead, so the partitions
/// made ahead are left out of the plans; unless something came past that, and then it is parked or
/// published in its turn like any other.
async fn latest(transaction: &Transaction<'_>, ahead: Uuid) -> Result<Uuid, OutboxError> {
    let text = include_str!("sql/has_later.sql");
    let rows = statement::rows(transaction, text, &[&ahead]).await?;
    let has_later = rows.first().map_or(Ok(true), |row| row.try_get(0))?;
    Ok(if has_later { Uuid::max() } else { ahead })
}

/// Claims one certain event, if it can be claimed: a probe.
///
/// # Errors
/// [`OutboxError`] of the database; nothing is leased then.
pub async fn claim_one(
    transaction: &Transaction<'_>,
    request: &ClaimRequest,
    (event, lane): (&EventKey, &LaneKey),
) -> Result<Option<ClaimedBatch>, OutboxError> {
    let ahead = statement::set_up(transaction).await?;
    let queues = crate::pools::pools(transaction, request.pools.as_deref()).await?;
    let queues = open(queues, &request.except);
    let work = Work {
        transaction,
        request,
        queues,
        latest: ahead,
    };
    let Some(leased) = work.lease(std::slice::from_ref(lane)).await? else {
        return Ok(None);
    };
    let served = work.served();
    let values: [&(dyn ToSql + Sync); 4] =
        [&event.event_id, &event.tenant_id, &event.source, &served];
    let rows = statement::rows(transaction, include_str!("sql/read_one.sql"), &values).await?;
    work.batch(leased, &rows).await
}

/// The pools that events may be published for now.
fn open(
    queues: BTreeMap<PoolName, PoolQueues>,
    except: &[PoolName],
) -> BTreeMap<PoolName, PoolQueues> {
    let is_open =
        |(pool, queues): &(PoolName, PoolQueues)| queues.is_ready && !except.contains(pool);
    queues.into_iter().filter(is_open).collect()
}

/// A claim at work.
struct Work<'a> {
    transaction: &'a Transaction<'a>,
    request: &'a ClaimRequest,
    queues: BTreeMap<PoolName, PoolQueues>,
    latest: Uuid,
}

struct Leased {
    token: LeaseToken,
    /// In the order of the walk.
    lanes: Vec<LaneKey>,
    is_suspect: bool,
    at: Instant,
}

impl Work<'_> {
    fn served(&self) -> Vec<&str> {
        self.queues.keys().map(PoolName::as_str).collect()
    }

    async fn take(&self, free: &[LaneKey]) -> Result<Option<ClaimedBatch>, OutboxError> {
        if free.is_empty() {
            return Ok(None);
        }
        let Some(leased) = self.lease(free).await? else {
            return Ok(None);
        };
        let rows = self.read(&leased).await?;
        let blocked = self.blocked(&leased, &rows)?;
        if !blocked.is_empty() {
            let (tenants, lanes) = arrays(&blocked);
            let text = include_str!("sql/mark_held.sql");
            statement::changed(self.transaction, text, &[&tenants, &lanes]).await?;
        }
        self.batch(leased, &rows).await
    }

    async fn lease(&self, free: &[LaneKey]) -> Result<Option<Leased>, OutboxError> {
        let token = LeaseToken::fresh();
        let at = Instant::now();
        let (tenants, lanes) = arrays(free);
        let values: [&(dyn ToSql + Sync); 5] = [
            &tenants,
            &lanes,
            &token.uuid(),
            &self.request.owner,
            &self.request.lease.as_secs_f64(),
        ];
        let text = include_str!("sql/lease.sql");
        let text = mutant::bent(mutant::LEASE_BY_NOW, text, "clock_timestamp()", "now()");
        let rows = statement::rows(self.transaction, &text, &values).await?;
        let mut leased = Vec::with_capacity(rows.len());
        let mut is_suspect = false;
        for row in &rows {
            let key = LaneKey {
                tenant_id: row.try_get("tenant_id")?,
                lane: row.try_get("lane")?,
            };
            // The claim itself has just added one.
            is_suspect |= row.try_get::<_, i64>("unsettled_claims")? > SUSPECT_AFTER;
            leased.push((row.try_get::<_, i64>("place")?, key));
        }
        leased.sort();
        Ok((!leased.is_empty()).then(|| Leased {
            token,
            lanes: leased.into_iter().map(|(_, key)| key).collect(),
            is_suspect,
            at,
        }))
    }

    async fn read(&self, leased: &Leased) -> Result<Vec<Row>, OutboxError> {
        let (tenants, lanes) = arrays(&leased.lanes);
        let values: [&(dyn ToSql + Sync); 7] = [
            &tenants,
            &lanes,
            &self.served(),
            &i64::from(depth(
                self.request.events,
                (lanes.len(), self.request.lanes),
            )),
            &i64::from(whole(self.request.events)),
            &i64::from(whole(self.request.bytes)),
            &self.latest,
        ];
        let text = include_str!("sql/read.sql");
        let (due, above) = ("and e.state = 'pending' and not e.held", WATERMARK);
        let text = mutant::bent(mutant::WATERMARK_CLAIM, text, due, above);
        Ok(statement::rows(self.transaction, &text, &values).await?)
    }

    fn blocked(&self, leased: &Leased, rows: &[Row]) -> Result<Vec<LaneKey>, OutboxError> {
        let mut blocked = Vec::new();
        for row in rows {
            if row.try_get(column::IS_BLOCKED)? {
                let place: i64 = row.try_get(column::PLACE)?;
                let index = usize::try_from(place - 1).unwrap_or(usize::MAX);
                blocked.extend(leased.lanes.get(index).cloned());
            }
        }
        Ok(blocked)
    }

    /// Makes a batch of what was read; lanes of which nothing was taken go back at once.
    async fn batch(
        &self,
        leased: Leased,
        rows: &[Row],
    ) -> Result<Option<ClaimedBatch>, OutboxError> {
        let mut events = Vec::with_capacity(rows.len());
        let mut has_holds = false;
        for row in rows {
            if row.try_get::<_, Option<i64>>(column::POSITION)?.is_some() {
                has_holds |= row.try_get::<_, bool>(column::HAS_HOLDS)?;
                events.push(ClaimedEvent::read(row)?);
            }
        }
        let taken: std::collections::HashSet<&LaneKey> =
            events.iter().map(|event| &event.lane).collect();
        let (lanes, empty): (Vec<_>, Vec<_>) = leased
            .lanes
            .into_iter()
            .partition(|lane| taken.contains(lane));
        if !empty.is_empty() {
            let (tenants, numbers) = arrays(&empty);
            let values: [&(dyn ToSql + Sync); 4] =
                [&tenants, &numbers, &leased.token.uuid(), &false];
            statement::changed(self.transaction, include_str!("sql/give_back.sql"), &values)
                .await?;
        }
        Ok((!events.is_empty()).then(|| {
            ClaimedBatch::new(Parts {
                token: leased.token,
                lanes,
                generations: self.generations_of(&events),
                events,
                is_suspect: leased.is_suspect,
                leased_at: leased.at,
                has_holds,
            })
        }))
    }

    fn generations_of(&self, events: &[ClaimedEvent]) -> BTreeMap<PoolName, crate::Generations> {
        let mut generations = BTreeMap::new();
        for event in events {
            if let Some(queues) = self.queues.get(&event.pool)
                && !generations.contains_key(&event.pool)
            {
                generations.insert(event.pool.clone(), queues.generations.clone());
            }
        }
        generations
    }
}

/// How many rows of each lane are read: an even share, since what is read beyond a batch is read in
/// vain. Where few lanes have work it is twice that, so that a deep one makes up for shallow ones.
fn depth(events: usize, (lanes, wanted): (usize, usize)) -> i32 {
    let lanes_are_few = lanes < wanted;
    let rows = if lanes_are_few {
        events.saturating_mul(2)
    } else {
        events
    };
    whole(rows.div_ceil(lanes.max(1)).clamp(4, events.max(4)))
}
