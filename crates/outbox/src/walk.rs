//! The walk: which lanes have work and are free, one probe of the claim index for each.

use std::collections::HashSet;

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::error::OutboxError;
use crate::key::LaneKey;
use crate::statement;

/// How many lanes are looked at for each one that is wanted: others may have leased most of them.
const LOOKS_PER_LANE: usize = 8;

/// Where the next walk begins: behind this lane. The default is the beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resume(Option<LaneKey>);

/// A walk through the lanes of the pools that are served.
pub(crate) struct Walk<'a> {
    pub(crate) transaction: &'a Transaction<'a>,
    pub(crate) served: &'a [&'a str],
    pub(crate) latest: Uuid,
}

/// What a walk found.
pub(crate) struct Found {
    pub(crate) free: Vec<LaneKey>,
    pub(crate) resume: Resume,
}

impl Walk<'_> {
    /// Looks for free lanes with work behind the place where the last walk ended, and from the
    /// beginning once that has come to the end.
    pub(crate) async fn round(&self, wanted: usize, resume: &Resume) -> Result<Found, OutboxError> {
        if self.served.is_empty() {
            return Ok(Found {
                free: Vec::new(),
                resume: Resume::default(),
            });
        }
        let mut found = self.from(wanted, resume).await?;
        let missing = wanted.saturating_sub(found.free.len());
        let is_at_end = found.resume == Resume::default() && *resume != Resume::default();
        if is_at_end && missing > 0 {
            let more = self.from(missing, &Resume::default()).await?;
            // What lies behind the old place has been seen already.
            let seen: HashSet<LaneKey> = found.free.iter().cloned().collect();
            let fresh = more.free.into_iter().filter(|lane| !seen.contains(lane));
            found.free.extend(fresh);
            found.resume = more.resume;
        }
        Ok(found)
    }

    async fn from(&self, wanted: usize, Resume(from): &Resume) -> Result<Found, OutboxError> {
        let (tenant, lane) = from
            .as_ref()
            .map_or(("", -1), |key| (&key.tenant_id, key.lane));
        let looks = wanted.saturating_mul(LOOKS_PER_LANE);
        let values: [&(dyn ToSql + Sync); 6] = [
            &self.served,
            &tenant,
            &lane,
            &whole(looks),
            &whole(wanted),
            &self.latest,
        ];
        let text = include_str!("sql/walk.sql");
        let rows = statement::rows(self.transaction, text, &values).await?;
        let mut free = Vec::new();
        let mut last = None;
        for row in &rows {
            let key = LaneKey {
                tenant_id: row.try_get("tenant_id")?,
                lane: row.try_get("lane")?,
            };
            if row.try_get("is_free")? {
                free.push(key.clone());
            }
            last = Some(key);
        }
        let has_stopped = rows.len() >= looks || free.len() >= wanted;
        Ok(Found {
            free,
            resume: Resume(last.filter(|_| has_stopped)),
        })
    }
}

/// A number as the statements take it.
pub(crate) fn whole(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
