//! `pinned`: whether an old snapshot, which keeps every dead row, slows the relay down.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::time::Instant;

use super::{EFFECT, QUEUE};
use crate::drain::{drain, metered, set_state};
use crate::fill::{Fill, clear, settle_down};
use crate::program::Program;
use crate::progress;
use crate::report::Report;
use crate::rig::Rig;
use crate::statistics::Series;
use crate::wire::{Arrivals, read_on};

/// Rows of one of the drains that follow each other while the snapshot is open.
const PART: u64 = 100_000;

/// Sizes of the bench.
#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// Rows of the drains that are measured.
    #[arg(long, default_value_t = 200_000)]
    pub events: u64,
    /// How long is drained with the snapshot open before the rate is measured again.
    #[arg(long, default_value_t = 180)]
    pub seconds: u64,
    /// How often the rate is measured before and at the end; the snapshot is held once.
    #[arg(long, default_value_t = 3)]
    pub repeat: u32,
}

/// Runs it.
///
/// # Errors
/// What the servers or the relay say.
pub async fn run(rig: &Rig, options: &Options) -> anyhow::Result<Report> {
    let mut report = Report::new("pinned");
    rig.describe(&mut report).await?;
    rig.make_queues(&[EFFECT]).await?;
    let mut fill = Fill {
        events: options.events,
        ..Fill::standard(rig.seed)
    };
    fill.add_tenants(&rig.database, "paused").await?;
    let relays = [Program::start(rig, "relay", &[]).await?];
    let mut arrivals = Arrivals::default();
    clear(&rig.database).await?;
    let before = rates(
        rig,
        &relays,
        options,
        (&mut fill, &mut arrivals, &mut report),
    )
    .await?;

    let snapshot = rig.site.database().await?;
    let open = "begin isolation level repeatable read; select txid_current_snapshot()";
    snapshot
        .batch_execute(open)
        .await
        .context("open a snapshot")?;
    let drained = drain_for(rig, options, (&mut fill, &mut arrivals, &mut report)).await?;
    fill.events = options.events;
    let pinned = rates(
        rig,
        &relays,
        options,
        (&mut fill, &mut arrivals, &mut report),
    )
    .await?;
    snapshot
        .batch_execute("rollback")
        .await
        .context("the snapshot did not last")?;
    let [relay] = relays;
    relay.stop().await?;

    let ratio = pinned.median() / before.median().max(1e-9);
    report.note(format!(
        "{} rows a measurement, {} of each; {drained} rows drained in between in {} s under an \
         open snapshot",
        options.events, options.repeat, options.seconds
    ));
    report.row("full drain rate before", &before, "events/s", "");
    report.row("full drain rate at the end", &pinned, "events/s", "");
    report.row(
        "at the end / before",
        &std::iter::once(ratio).collect(),
        "",
        ">= 0.9",
    );
    report.figure("ratio", ratio);
    report.figure("before_per_s", before.median().round());
    report.figure("pinned_per_s", pinned.median().round());
    report.fact("drained_meanwhile", drained);
    report.fact("out_of_order", arrivals.out_of_order);
    Ok(report)
}

type State<'a> = (&'a mut Fill, &'a mut Arrivals, &'a mut Report);

/// The full drain rate, several times.
async fn rates(
    rig: &Rig,
    relays: &[Program],
    options: &Options,
    (fill, arrivals, report): State<'_>,
) -> anyhow::Result<Series> {
    let mut series = Series::default();
    for _ in 0..options.repeat {
        fill.write(&rig.database).await?;
        settle_down(&rig.database).await?;
        series.push(metered(rig, relays, *fill, report).await?.rate(*fill));
        check(rig, (fill, arrivals, report)).await?;
    }
    Ok(series)
}

/// Drains one part after the other for as long as asked.
async fn drain_for(
    rig: &Rig,
    options: &Options,
    (fill, arrivals, report): State<'_>,
) -> anyhow::Result<u64> {
    let lasting = Duration::from_secs(options.seconds);
    let bar = progress::bar("drain under a snapshot", options.seconds);
    let start = Instant::now();
    let mut drained = 0;
    fill.events = PART.min(options.events);
    while start.elapsed() < lasting {
        fill.write(&rig.database).await?;
        drain(&rig.database, fill.prefix).await?;
        set_state(&rig.database, fill.prefix, "paused").await?;
        drained += fill.events;
        check(rig, (fill, arrivals, report)).await?;
        bar.set_position(start.elapsed().as_secs());
    }
    bar.finish_and_clear();
    Ok(drained)
}

async fn check(rig: &Rig, (fill, arrivals, report): State<'_>) -> anyhow::Result<()> {
    fill.first += fill.events;
    read_on(&rig.broker, QUEUE, fill.first, arrivals).await?;
    arrivals.judge(fill.first, report);
    Ok(())
}
