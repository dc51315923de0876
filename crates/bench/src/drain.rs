//! One drain: pending rows are let go at a known moment, and the last one settled ends it.

use std::time::Duration;

use anyhow::{Context, bail};
use chrono::{DateTime, Utc};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use crate::cpu::{Meter, sessions};
use crate::fill::Fill;
use crate::program::Program;
use crate::progress;
use crate::report::Report;
use crate::rig::Rig;
use crate::statistics::{figure, rate};

/// How often it is asked whether anything is pending still.
const LOOK: Duration = Duration::from_millis(100);

/// Sessions report what they have changed about once a second.
const QUIET: Duration = Duration::from_millis(1_200);

/// How long nothing may be settled before a drain counts as stuck.
const STUCK: Duration = Duration::from_secs(60);

/// A drain and the CPU time that relays and their sessions spent on it.
#[derive(Debug, Clone, Copy)]
pub struct Metered {
    /// How it went.
    pub drained: Drained,
    /// Of the relays' processes, in microseconds an event.
    pub relay_us: f64,
    /// Of the server processes behind their sessions, likewise.
    pub sessions_us: f64,
}

/// Drains and meters; whatever was not published is a fault.
///
/// # Errors
/// The database's, or a drain that stands still.
pub async fn metered(
    rig: &Rig,
    relays: &[Program],
    fill: Fill,
    report: &mut Report,
) -> anyhow::Result<Metered> {
    let backends = sessions(&rig.database, "relay").await?;
    let process = Meter::start(relays.iter().map(Program::pid).collect());
    let servers = Meter::start(backends);
    let drained = drain(&rig.database, fill.prefix).await?;
    let each = |used: Duration| used.as_secs_f64() * 1e6 / figure(fill.events.max(1));
    let (relay_us, sessions_us) = (each(process.read()), each(servers.read()));
    set_state(&rig.database, fill.prefix, "paused").await?;
    if drained.other != 0 {
        report.fault(format!("{} events did not end as published", drained.other));
    }
    Ok(Metered {
        drained,
        relay_us,
        sessions_us,
    })
}

impl Metered {
    /// Events a second; `fill` is what was drained.
    #[must_use]
    pub fn rate(&self, fill: Fill) -> f64 {
        rate(fill.events, self.drained.took)
    }

    /// All CPU time an event.
    #[must_use]
    pub fn cpu_us(&self) -> f64 {
        self.relay_us + self.sessions_us
    }
}

/// How a drain went.
#[derive(Debug, Clone, Copy)]
pub struct Drained {
    /// Events published.
    pub published: u64,
    /// Events in any other state.
    pub other: u64,
    /// From letting go to the last settle, by the database's clock.
    pub took: Duration,
    /// The last settle.
    pub last: DateTime<Utc>,
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
    let last: DateTime<Utc> = row.get::<_, Option<_>>(2).unwrap_or(start);
    Ok(Drained {
        published: u64::try_from(row.get::<_, i64>(0))?,
        other: u64::try_from(row.get::<_, i64>(1))?,
        took: (last - start).to_std().unwrap_or_default(),
        last,
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
    loop {
        // By PostgreSQL's own statistics, which cost nothing. The rows are asked only once these
        // stand still: each such question walks all entries that the drain has left behind.
        let count: i64 = database.query_one(&settled, &[]).await?.get(0);
        if count != last {
            (last, moved) = (count, Instant::now());
        }
        if moved.elapsed() > QUIET && !database.query_one(&pending, &[]).await?.get::<_, bool>(0) {
            break;
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
