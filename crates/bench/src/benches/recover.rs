//! `recover`: how long the lanes of a killed relay stand still.
//!
//! Under load one of two relays is stopped at a moment when it holds lanes, then killed. The time
//! runs from there to the arrival of an event from the last of those lanes; every lane gets several
//! events a second.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::bail;
use chrono::{DateTime, Utc};
use clap::Args;
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep};

use super::{EFFECT, QUEUE};
use crate::load::{Load, Recorded};
use crate::program::Program;
use crate::progress;
use crate::report::Report;
use crate::rig::Rig;
use crate::statistics::{Latencies, Series};
use crate::tap::Tap;

/// Few, so that each of their 16 lanes is in use all the time.
const TENANTS: usize = 4;

/// How long a kill may wait for a moment when the relay holds lanes.
const PATIENCE: Duration = Duration::from_secs(20);

/// The load goes on for this long after a kill.
const AFTER: Duration = Duration::from_secs(7);

/// Sizes of the bench.
#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// How often a relay is killed.
    #[arg(long, default_value_t = 20)]
    pub repeat: u32,
    /// Events a second meanwhile.
    #[arg(long, default_value_t = 1_000.0)]
    pub rate: f64,
}

/// Runs it.
///
/// # Errors
/// What the servers or the relays say.
pub async fn run(rig: &Rig, options: &Options) -> anyhow::Result<Report> {
    let mut report = Report::new("recover");
    rig.describe(&mut report).await?;
    rig.make_queues(&[EFFECT]).await?;
    let statement = include_str!("../sql/add_tenants.sql");
    let tenants = i64::try_from(TENANTS)?;
    rig.database
        .execute(statement, &[&"t", &tenants, &"active"])
        .await?;
    let tap = Tap::open(&rig.broker, QUEUE).await?;
    let mut relays = [
        Some(Program::start(rig, "relay", &[]).await?),
        Some(Program::start(rig, "relay", &[]).await?),
    ];
    let (mut stood, mut lanes, mut recorded) = (Latencies::default(), Series::default(), 0);
    let bar = progress::bar("kill relays", u64::from(options.repeat));
    for number in 0..options.repeat {
        let Some(place) = relays.get_mut(usize::try_from(number % 2)?) else {
            bail!("there are two relays");
        };
        let Some(relay) = place.take() else {
            bail!("a relay is missing");
        };
        let kill = kill(rig, &tap, relay, options).await?;
        stood.push(kill.stood);
        lanes.push(kill.lanes);
        recorded += kill.recorded;
        *place = Some(Program::start(rig, "relay", &[]).await?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    tap.wait(recorded, Duration::from_secs(30)).await?;
    tap.look(|heard| heard.arrivals.judge(recorded as u64, &mut report));
    for relay in relays.into_iter().flatten() {
        relay.stop().await?;
    }
    tell(options, (&stood, &lanes), &tap, &mut report);
    Ok(report)
}

/// One kill.
#[derive(Debug)]
struct Kill {
    stood: Duration,
    lanes: f64,
    recorded: usize,
}

async fn kill(rig: &Rig, tap: &Tap, relay: Program, options: &Options) -> anyhow::Result<Kill> {
    let load = Load {
        rate: options.rate,
        lasting: AFTER + Duration::from_secs(2),
        prefix: "t",
        tenants: TENANTS,
        aggregates: 2_000,
        event_type: "ticket.updated",
        payload: 500,
        hint: true,
        seed: rig.seed,
    };
    let recording = load.run(rig, false);
    let killing = async {
        sleep(Duration::from_secs(1)).await;
        let held = stop_holding_lanes(rig, &relay).await?;
        let at = Utc::now();
        relay.kill().await?;
        anyhow::Ok((held, at))
    };
    let (recorded, (held, at)) = tokio::try_join!(recording, killing)?;
    let moved = moved_again(rig, tap, &recorded, (&held, at)).await?;
    Ok(Kill {
        stood: (moved - at).to_std().unwrap_or_default(),
        lanes: held.len() as f64,
        recorded: recorded.len(),
    })
}

type Lane = (String, i16);

/// Stops the relay in its tracks at a moment when it holds lanes; which.
async fn stop_holding_lanes(rig: &Rig, relay: &Program) -> anyhow::Result<HashSet<Lane>> {
    let statement = rig
        .database
        .prepare(include_str!("../sql/lanes_of.sql"))
        .await?;
    let owner = format!("%{}%", relay.pid());
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        relay.signal(Signal::SIGSTOP)?;
        // What it had sent before may still be at work.
        sleep(Duration::from_millis(20)).await;
        let rows = rig.database.query(&statement, &[&owner]).await?;
        if !rows.is_empty() {
            return Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect());
        }
        relay.signal(Signal::SIGCONT)?;
        sleep(Duration::from_millis(37)).await;
    }
    bail!("the relay never holds a lane");
}

/// When the last of the lanes had an event arrive that was committed after the kill.
async fn moved_again(
    rig: &Rig,
    tap: &Tap,
    recorded: &[Recorded],
    (held, at): (&HashSet<Lane>, DateTime<Utc>),
) -> anyhow::Result<DateTime<Utc>> {
    let ids: Vec<uuid::Uuid> = recorded.iter().map(|one| one.event_id).collect();
    let statement = include_str!("../sql/lanes_by_event.sql");
    let rows = rig.database.query(statement, &[&ids]).await?;
    let mut last = at;
    for lane in held {
        let of_lane = rows
            .iter()
            .filter(|row| lane.0 == row.get::<_, String>(1) && lane.1 == row.get::<_, i16>(2));
        let arrivals = of_lane.filter_map(|row| {
            tap.look(|heard| heard.at.get(&row.get(0)).copied())
                .filter(|arrived| *arrived > at)
        });
        match arrivals.min() {
            Some(first) => last = last.max(first),
            None => bail!("lane {lane:?} did not move again within {AFTER:?}"),
        }
    }
    Ok(last)
}

fn tell(options: &Options, (stood, lanes): (&Latencies, &Series), tap: &Tap, report: &mut Report) {
    let one = |value: f64| std::iter::once(value).collect::<Series>();
    report.note(format!(
        "{} kills of one of two relays under {} events/s, {TENANTS} tenants",
        options.repeat, options.rate
    ));
    report.row("lanes held when killed", lanes, "", "");
    report.row(
        "until they move again, p50",
        &one(stood.quantile_ms(0.5)),
        "ms",
        "",
    );
    report.row(
        "until they move again, p99",
        &one(stood.quantile_ms(0.99)),
        "ms",
        "< 4000",
    );
    report.row(
        "until they move again, most",
        &one(stood.max_ms()),
        "ms",
        "",
    );
    let again = tap.look(|heard| heard.arrivals.again);
    report.row(
        "events on the wire twice",
        &one(crate::statistics::figure(again)),
        "",
        "",
    );
    report.fact("kills", options.repeat);
    report.figure("p50_ms", stood.quantile_ms(0.5));
    report.figure("p99_ms", stood.quantile_ms(0.99));
    report.figure("max_ms", stood.max_ms());
    report.fact("duplicates", again);
    report.fact(
        "out_of_order",
        tap.look(|heard| heard.arrivals.out_of_order),
    );
}
