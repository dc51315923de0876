//! One drain: pending rows are let go at a known moment, and the last one settled ends it.

use std::time::Duration;

use anyhow::{Context, bail};
use chrono::{DateTime, Utc};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use crate::progress;

/// How often it is asked whether anything is pending still.
const LOOK: Duration = Duration::from_millis(100);

/// How long nothing may be settled before a drain counts as stuck.
const STUCK: Duration = Duration::from_secs(60);

/// How a drain went.
#[derive(Debug, Clone, Copy)]
pub struct Drained {
    /// Events published.
    pub published: u64,
    /// Events in any other state.
    pub other: u64,
    /// From letting go to the last settle, by the database's clock.
    pub took: Duration,
}

/// Lets the relays at the tenants with a prefix and waits until nothing is pending.
///
/// # Errors
/// The database's, or a drain that stands still.
pub async fn drain(database: &Client, prefix: &str) -> anyhow::Result<Drained> {
    let start = set_state(database, prefix, "active").await?;
    wait(database).await?;
    let row = database
        .query_one(include_str!("sql/published.sql"), &[&prefix])
        .await
        .context("count what was published")?;
    let last: Option<DateTime<Utc>> = row.get(2);
    let took = last
        .map(|last| last - start)
        .and_then(|took| took.to_std().ok());
    Ok(Drained {
        published: u64::try_from(row.get::<_, i64>(0))?,
        other: u64::try_from(row.get::<_, i64>(1))?,
        took: took.unwrap_or_default(),
    })
}

/// Lets the relays at the tenants with a prefix (`active`) or holds them off (`paused`).
///
/// # Errors
/// The database's.
pub async fn set_state(
    database: &Client,
    prefix: &str,
    state: &str,
) -> anyhow::Result<DateTime<Utc>> {
    let statement = include_str!("sql/set_state.sql");
    let row = database.query_one(statement, &[&prefix, &state]).await?;
    Ok(row.get(0))
}

/// Waits until no event is pending.
///
/// # Errors
/// The database's, or if that does not come about.
pub async fn wait(database: &Client) -> anyhow::Result<()> {
    let pending = database.prepare(include_str!("sql/is_pending.sql")).await?;
    let settled = database.prepare(include_str!("sql/settled.sql")).await?;
    let bar = progress::bar("drain", 0);
    let (mut last, mut moved) = (-1_i64, Instant::now());
    while database.query_one(&pending, &[]).await?.get(0) {
        // Updated rows by PostgreSQL's own statistics: no look at the rows themselves.
        let count: i64 = database.query_one(&settled, &[]).await?.get(0);
        if count != last {
            (last, moved) = (count, Instant::now());
        }
        if moved.elapsed() > STUCK {
            bail!("nothing has been settled for {STUCK:?}");
        }
        bar.tick();
        sleep(LOOK).await;
    }
    bar.finish_and_clear();
    Ok(())
}
