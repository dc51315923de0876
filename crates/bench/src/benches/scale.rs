//! `scale`: what more relays and more consumers bring, and that order stays.

use std::time::Duration;

use clap::Args;

use super::{EFFECT, QUEUE, consume};
use crate::drain::metered;
use crate::fill::{Fill, clear, messages, settle_down};
use crate::program::Program;
use crate::report::Report;
use crate::rig::Rig;
use crate::statistics::Series;
use crate::wire::read;

/// Processes of a kind at once.
const NUMBERS: [usize; 3] = [1, 2, 4];

/// A measurement this much below the one with fewer processes is noise.
const NOISE: f64 = 0.9;

/// Sizes of the bench.
#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// Rows to drain, and messages to apply.
    #[arg(long, default_value_t = 200_000)]
    pub events: u64,
    /// How often all is measured.
    #[arg(long, default_value_t = 3)]
    pub repeat: u32,
}

/// Runs it.
///
/// # Errors
/// What the servers or the processes say.
pub async fn run(rig: &Rig, options: &Options) -> anyhow::Result<Report> {
    let mut report = Report::new("scale");
    rig.describe(&mut report).await?;
    rig.make_queues(&[EFFECT]).await?;
    let fill = Fill {
        events: options.events,
        ..Fill::standard(rig.seed)
    };
    fill.add_tenants(&rig.database, "paused").await?;
    let (mut relays, mut consumers) = <([Series; 3], [Series; 3])>::default();
    let mut out_of_order = 0;
    for _ in 0..options.repeat {
        for (number, series) in NUMBERS.into_iter().zip(&mut relays) {
            let (per_second, wrong) = by_relays(rig, number, fill, &mut report).await?;
            series.push(per_second);
            out_of_order += wrong;
        }
    }
    clear(&rig.database).await?;
    fill.write(&rig.database).await?;
    let all = messages(&rig.database, options.events).await?;
    clear(&rig.database).await?;
    for _ in 0..options.repeat {
        for (number, series) in NUMBERS.into_iter().zip(&mut consumers) {
            series.push(consume::by_consumers(rig, number, &all, &mut report).await?);
        }
    }
    report.note(format!(
        "{} events, {} repetitions",
        options.events, options.repeat
    ));
    let relays = tell("relays", &relays, &mut report);
    let consumers = tell("consumers", &consumers, &mut report);
    report.figure("ratio", relays.min(consumers));
    report.fact("events", options.events);
    report.fact("out_of_order", out_of_order);
    Ok(report)
}

/// Drains with so many relays: events a second, and how many came out of order.
async fn by_relays(
    rig: &Rig,
    number: usize,
    fill: Fill,
    report: &mut Report,
) -> anyhow::Result<(f64, u64)> {
    clear(&rig.database).await?;
    fill.write(&rig.database).await?;
    settle_down(&rig.database).await?;
    let mut relays = Vec::new();
    for _ in 0..number {
        relays.push(Program::start(rig, "relay", &[]).await?);
    }
    // Connections are made and statements prepared before the rows are let go.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let metered = metered(rig, &relays, fill, report).await?;
    for relay in relays {
        relay.stop().await?;
    }
    let arrivals = read(&rig.broker, QUEUE, fill.events).await?;
    arrivals.judge(fill.events, report);
    Ok((metered.rate(fill), arrivals.out_of_order))
}

/// The least of what a step to more processes brought.
fn tell(what: &str, all: &[Series; 3], report: &mut Report) -> f64 {
    let mut least = f64::INFINITY;
    let mut last: Option<f64> = None;
    for (number, series) in NUMBERS.into_iter().zip(all) {
        let reach = match last {
            Some(last) => format!(">= {:.0}", last * NOISE),
            None => String::new(),
        };
        report.row(format!("{number} {what}"), series, "events/s", &reach);
        report.figure(&format!("{what}_{number}_per_s"), series.median().round());
        least = least.min(last.map_or(f64::INFINITY, |last| series.median() / last));
        last = Some(series.median());
    }
    least
}
