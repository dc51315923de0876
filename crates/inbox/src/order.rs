//! Order within an aggregate: heads locked in key order, and which of a set fit.

use std::collections::BTreeMap;

use deadpool_postgres::Transaction;
use event::{Aggregate, EffectName, Event, TenantId};
use futures_util::future::try_join;
use tokio_postgres::Error;

use crate::effect::Place;
use crate::mutant;

/// An aggregate of a tenant, in the order in which heads are locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeadKey<'a> {
    tenant_id: &'a str,
    aggregate_type: &'a str,
    aggregate_id: &'a str,
}

impl<'a> HeadKey<'a> {
    pub(crate) fn of(event: &'a Event) -> Self {
        Self::new(&event.identity.tenant_id, &event.aggregate)
    }

    fn new(tenant: &'a TenantId, aggregate: &'a Aggregate) -> Self {
        Self {
            tenant_id: tenant.as_str(),
            aggregate_type: aggregate.aggregate_type.as_str(),
            aggregate_id: aggregate.aggregate_id.as_str(),
        }
    }
}

/// The locked heads of a set: their versions as found, and as they are to be left.
#[derive(Debug, Default)]
pub(crate) struct Heads<'a> {
    versions: BTreeMap<HeadKey<'a>, (i64, i64)>,
}

/// How a version stands to the head of its aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    Next,
    Late,
    Waits,
}

/// How a version with this predecessor stands to a head.
pub(crate) fn fit(head: i64, previous: i64, version: i64) -> Fit {
    if version <= head {
        Fit::Late
    } else if previous == head || mutant::is_planted(mutant::NO_ORDER) {
        Fit::Next
    } else {
        Fit::Waits
    }
}

impl<'a> Heads<'a> {
    /// Makes missing heads, and locks all of them.
    pub(crate) async fn lock(
        transaction: &Transaction<'_>,
        effect: &EffectName,
        events: impl Iterator<Item = &'a Event>,
    ) -> Result<Self, Error> {
        let versioned = events.filter(|event| event.version.is_some());
        let mut heads = Self {
            versions: versioned
                .map(|event| (HeadKey::of(event), (0, 0)))
                .collect(),
        };
        if heads.versions.is_empty() {
            return Ok(heads);
        }
        let columns = Columns::of(heads.versions.keys());
        let name = effect.as_str();
        let make = transaction
            .prepare_cached(include_str!("sql/heads_make.sql"))
            .await?;
        let lock = transaction
            .prepare_cached(include_str!("sql/heads_lock.sql"))
            .await?;
        let (tenants, types, ids) = (&columns.tenants, &columns.types, &columns.ids);
        // One after the other on the server: two statements, sent without waiting in between.
        let (_, rows) = try_join(
            transaction.execute(&make, &[tenants, types, ids, &name]),
            transaction.query(&lock, &[tenants, types, ids, &name]),
        )
        .await?;
        let mut found = vec![0; heads.versions.len()];
        for row in &rows {
            let place: i64 = row.try_get("place")?;
            let of = usize::try_from(place - 1)
                .ok()
                .and_then(|place| found.get_mut(place));
            if let Some(of) = of {
                *of = row.try_get("version")?;
            }
        }
        for ((was, is), version) in heads.versions.values_mut().zip(found) {
            (*was, *is) = (version, version);
        }
        Ok(heads)
    }

    /// Where the event stands now; one that fits moves the head. None: it has to wait.
    pub(crate) fn place(&mut self, event: &'a Event, over_gap: bool) -> Option<Place> {
        let (Some(version), Some(previous)) = (event.version, event.previous_version) else {
            return Some(Place::Unordered);
        };
        let Some((_, head)) = self.versions.get_mut(&HeadKey::of(event)) else {
            return Some(Place::Unordered);
        };
        let place = match fit(*head, previous, version) {
            Fit::Late => return Some(Place::Late),
            Fit::Next => Place::Next,
            Fit::Waits if over_gap => Place::AfterGap,
            Fit::Waits => return None,
        };
        *head = version;
        Some(place)
    }

    /// The version an aggregate's head was found at.
    pub(crate) fn found(&self, event: &'a Event) -> i64 {
        self.versions
            .get(&HeadKey::of(event))
            .map_or(0, |(was, _)| *was)
    }

    /// Writes the heads that moved and wakes the rows that fit now.
    pub(crate) async fn store(
        &self,
        transaction: &Transaction<'_>,
        effect: &EffectName,
    ) -> Result<(), Error> {
        let moved: Vec<_> = self
            .versions
            .iter()
            .filter(|(_, (was, is))| was != is)
            .collect();
        if moved.is_empty() {
            return Ok(());
        }
        let columns = Columns::of(moved.iter().map(|(key, _)| *key));
        let versions: Vec<i64> = moved.iter().map(|(_, (_, is))| *is).collect();
        let name = effect.as_str();
        let step = transaction
            .prepare_cached(include_str!("sql/heads_move.sql"))
            .await?;
        let wake = transaction
            .prepare_cached(include_str!("sql/rows_wake.sql"))
            .await?;
        let (tenants, types, ids) = (&columns.tenants, &columns.types, &columns.ids);
        try_join(
            transaction.execute(&step, &[tenants, types, ids, &versions, &name]),
            transaction.execute(&wake, &[tenants, types, ids, &versions, &name]),
        )
        .await?;
        Ok(())
    }
}

struct Columns<'a> {
    tenants: Vec<&'a str>,
    types: Vec<&'a str>,
    ids: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn of<'b>(keys: impl Iterator<Item = &'b HeadKey<'a>> + Clone) -> Self
    where
        'a: 'b,
    {
        Self {
            tenants: keys.clone().map(|key| key.tenant_id).collect(),
            types: keys.clone().map(|key| key.aggregate_type).collect(),
            ids: keys.map(|key| key.aggregate_id).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_fits_only_right_behind_its_predecessor() {
        let cases = [
            (0, 0, 1, Fit::Next),
            (3, 3, 7, Fit::Next),
            (3, 2, 3, Fit::Late),
            (3, 0, 1, Fit::Late),
            (3, 4, 5, Fit::Waits),
            (3, 2, 5, Fit::Waits),
            (0, i64::MAX - 1, i64::MAX, Fit::Waits),
        ];
        for (head, previous, version, wanted) in cases {
            assert_eq!(
                fit(head, previous, version),
                wanted,
                "{head} {previous} {version}"
            );
        }
    }
}
