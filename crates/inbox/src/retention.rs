//! Receipts are kept for the dedup window. First the floor is raised and committed, so that no
//! delivery below it is applied any more; then the partitions below it are emptied; then
//! `truncated` follows, and empty partitions go.

use std::time::Duration;

use chrono::NaiveDate;
use deadpool_postgres::Object;

use crate::failure::InboxError;
use crate::inbox::Inbox;
use crate::lent::{Failure, Lent, within};

/// What a round of retention did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retained {
    /// Partitions made ahead.
    pub made: usize,
    /// Partitions emptied.
    pub emptied: usize,
    /// Empty partitions dropped.
    pub dropped: usize,
    /// Receipts of old days that had no partition of their own.
    pub deleted: u64,
    /// Partitions that somebody held; their turn comes again.
    pub skipped: usize,
}

/// Days made ahead, today included.
const AHEAD: i32 = 15;

impl Inbox {
    /// Makes the partitions of the next days. Two at once do no harm.
    ///
    /// # Errors
    /// [`InboxError`] of the database.
    pub async fn make_partitions(&self) -> Result<usize, InboxError> {
        let mut lent = Lent::get(&self.pool).await?;
        let work = async {
            let client = lent.client()?;
            let mut made = 0;
            for ahead in 0..AHEAD {
                let row = client
                    .query_one(include_str!("sql/partition_make.sql"), &[&ahead])
                    .await?;
                made += usize::from(row.try_get::<_, bool>("made")?);
            }
            Ok(made)
        };
        let result = within(self.policy.deadline, work).await;
        lent.settle(&result);
        Ok(result?)
    }

    /// Raises the floor to the window's age: nothing older is applied from then on.
    ///
    /// # Errors
    /// [`InboxError`] of the database.
    pub async fn raise_floor(&self, window: Duration) -> Result<(), InboxError> {
        let mut lent = Lent::get(&self.pool).await?;
        let work = async { raise(lent.client()?, window).await.map(drop) };
        let result = within(self.policy.deadline, work).await;
        lent.settle(&result);
        Ok(result?)
    }

    /// Raises the floor to the window's age, and removes the receipts below it.
    ///
    /// # Errors
    /// [`InboxError`] of the database. What was done until then stands, and the rest is done by
    /// the next round.
    pub async fn retain(&self, window: Duration) -> Result<Retained, InboxError> {
        let mut lent = Lent::get(&self.pool).await?;
        let work = async { retain_in(lent.client()?, window).await };
        let result = within(self.policy.deadline, work).await;
        lent.settle(&result);
        Ok(result?)
    }
}

async fn retain_in(client: &mut Object, window: Duration) -> Result<Retained, Failure> {
    let mut retained = Retained::default();
    let first_kept = raise(client, window).await?;
    let rows = client
        .query(include_str!("sql/partitions.sql"), &[])
        .await?;
    for row in rows {
        let day: NaiveDate = row.try_get("day")?;
        if day >= first_kept {
            continue;
        }
        match empty(client, day).await? {
            Some(dropped) => {
                retained.emptied += 1;
                retained.dropped += usize::from(dropped);
            }
            None => retained.skipped += 1,
        }
    }
    if retained.skipped == 0 {
        retained.deleted = client
            .execute(include_str!("sql/default_delete.sql"), &[&first_kept])
            .await?;
        client
            .execute(include_str!("sql/truncated_raise.sql"), &[&first_kept])
            .await?;
    }
    Ok(retained)
}

/// A statement of its own is a transaction of its own: committed before anything goes. The first
/// day that is kept.
async fn raise(client: &Object, window: Duration) -> Result<NaiveDate, Failure> {
    let row = client
        .query_one(
            include_str!("sql/floor_raise.sql"),
            &[&window.as_secs_f64()],
        )
        .await?;
    Ok(row.try_get("first_kept")?)
}

/// Empties a partition, and drops it if nobody holds it. None if not even the first was possible.
async fn empty(client: &mut Object, day: NaiveDate) -> Result<Option<bool>, Failure> {
    let emptied = client
        .query_one(include_str!("sql/partition_truncate.sql"), &[&day])
        .await;
    match emptied {
        Ok(_) => {}
        Err(error) if is_busy(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let dropped = client
        .query_one(include_str!("sql/partition_drop.sql"), &[&day])
        .await;
    match dropped {
        Ok(row) => Ok(Some(row.try_get("dropped")?)),
        Err(error) if is_busy(&error) => Ok(Some(false)),
        Err(error) => Err(error.into()),
    }
}

fn is_busy(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&tokio_postgres::error::SqlState::LOCK_NOT_AVAILABLE)
}
