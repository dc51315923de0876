//! What stands in the way of new receipts, read in a statement later than their insert: the floor,
//! ids from the future, and rows of the same identity that may still be applied.

use deadpool_postgres::Transaction;
use event::{Digest, EffectName};
use futures_util::future::try_join;
use tokio_postgres::Error;
use uuid::Uuid;

use crate::delivery::Readable;
use crate::mutant;
use crate::policy::SKEW;
use crate::receipts::Keys;

/// The window of ids that may be applied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) floor: Uuid,
    pub(crate) ceiling: Uuid,
}

/// A row of an identity that may still be applied.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) delivery_id: i64,
    pub(crate) digest: Vec<u8>,
    pub(crate) state: String,
}

/// What a new receipt meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Met {
    /// Nothing: the effect may be applied. The row, if there is one, goes with it.
    Nothing { row: Option<i64> },
    /// A row that stands for this copy too and is tried in its own way.
    SameRow,
    /// Another content that came first and may still be applied.
    Other { first: Vec<u8> },
    /// It is older than the dedup window.
    BelowFloor,
    /// It is from the future.
    Ahead,
}

/// Reads the window and, for each of the set, its rows.
pub(crate) async fn look(
    transaction: &Transaction<'_>,
    effect: &EffectName,
    set: &[Readable<'_>],
) -> Result<Vec<Met>, Error> {
    let (window, rows) = try_join(window(transaction), rows(transaction, effect, set)).await?;
    let met = set.iter().zip(rows);
    Ok(met
        .map(|(one, rows)| judge(window, one.identity().event_id, one.digest, &rows))
        .collect())
}

async fn window(transaction: &Transaction<'_>) -> Result<Window, Error> {
    let statement = transaction
        .prepare_cached(include_str!("sql/floor_read.sql"))
        .await?;
    let row = transaction
        .query_one(&statement, &[&SKEW.as_secs_f64()])
        .await?;
    Ok(Window {
        floor: row.try_get("floor")?,
        ceiling: row.try_get("ceiling")?,
    })
}

async fn rows(
    transaction: &Transaction<'_>,
    effect: &EffectName,
    set: &[Readable<'_>],
) -> Result<Vec<Vec<Standing>>, Error> {
    let keys = Keys::of(set.iter().copied());
    let statement = transaction
        .prepare_cached(include_str!("sql/standing_read.sql"))
        .await?;
    let found = transaction
        .query(
            &statement,
            &[&keys.ids, &keys.tenants, &keys.sources, &effect.as_str()],
        )
        .await?;
    let mut rows = vec![Vec::new(); set.len()];
    for row in &found {
        let place: i64 = row.try_get("place")?;
        let standing = Standing {
            delivery_id: row.try_get("delivery_id")?,
            digest: row.try_get("digest")?,
            state: row.try_get("state")?,
        };
        let of = usize::try_from(place - 1)
            .ok()
            .and_then(|place| rows.get_mut(place));
        if let Some(of) = of {
            of.push(standing);
        }
    }
    Ok(rows)
}

fn judge(window: Window, id: Uuid, digest: &Digest, rows: &[Standing]) -> Met {
    let same = rows.iter().find(|row| row.digest == digest.as_bytes());
    let other = rows.iter().find(|row| row.digest != digest.as_bytes());
    match (same, other) {
        // The row came first; the other one was already found to be a conflict, or will be.
        (Some(row), _)
            if matches!(row.state.as_str(), "deferred" | "waiting") && id >= window.floor =>
        {
            Met::Nothing {
                row: Some(row.delivery_id),
            }
        }
        (Some(_), _) => Met::SameRow,
        (None, Some(first)) => Met::Other {
            first: first.digest.clone(),
        },
        (None, None) if id < window.floor && !mutant::is_planted(mutant::NO_FLOOR) => {
            Met::BelowFloor
        }
        (None, None) if id >= window.ceiling => Met::Ahead,
        (None, None) => Met::Nothing { row: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(digest: &Digest, state: &str) -> Standing {
        Standing {
            delivery_id: 7,
            digest: digest.as_bytes().to_vec(),
            state: state.to_owned(),
        }
    }

    #[test]
    fn what_stands_in_the_way_decides() {
        let window = Window {
            floor: Uuid::from_u128(10),
            ceiling: Uuid::from_u128(20),
        };
        let ours = Digest::of_bytes([b"ours".as_slice()]);
        let theirs = Digest::of_bytes([b"theirs".as_slice()]);
        let other = || Met::Other {
            first: theirs.as_bytes().to_vec(),
        };
        let nothing = |row| Met::Nothing { row };
        let cases: [(u128, Vec<Standing>, Met); 10] = [
            (15, vec![], nothing(None)),
            (10, vec![], nothing(None)),
            (9, vec![], Met::BelowFloor),
            (20, vec![], Met::Ahead),
            (15, vec![row(&ours, "deferred")], nothing(Some(7))),
            (15, vec![row(&ours, "waiting")], nothing(Some(7))),
            (15, vec![row(&ours, "suspect")], Met::SameRow),
            (15, vec![row(&ours, "parked")], Met::SameRow),
            (9, vec![row(&ours, "deferred")], Met::SameRow),
            (15, vec![row(&theirs, "parked")], other()),
        ];
        for (id, rows, wanted) in cases {
            assert_eq!(
                judge(window, Uuid::from_u128(id), &ours, &rows),
                wanted,
                "{id} {rows:?}"
            );
        }
    }
}
