//! `drain`: how fast pending rows become confirmed messages, against raw publishing of the same.

use clap::Args;

use super::{EFFECT, QUEUE};
use crate::ceiling::{Ceiling, WAYS};
use crate::drain::{Metered, metered};
use crate::fill::{Fill, clear, messages, settle_down};
use crate::program::Program;
use crate::report::Report;
use crate::rig::Rig;
use crate::statistics::{Series, figure};
use crate::wire::read;

/// Messages that each way of raw publishing sends in a round; there are two rounds a repetition.
const RAW: u64 = 25_000;

/// Sizes of the bench.
#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// Pending rows.
    #[arg(long, default_value_t = 200_000)]
    pub events: u64,
    /// Tenants they belong to.
    #[arg(long, default_value_t = 100)]
    pub tenants: u64,
    /// Aggregates they are about.
    #[arg(long, default_value_t = 2_000)]
    pub aggregates: u64,
    /// Bytes of each payload.
    #[arg(long, default_value_t = 500)]
    pub payload: u32,
    /// Rows of one aggregate alone, drained beside.
    #[arg(long, default_value_t = 3_000)]
    pub alone: u64,
    /// How often all is measured.
    #[arg(long, default_value_t = 5)]
    pub repeat: u32,
}

#[derive(Debug, Default)]
struct Measured {
    relay: Series,
    raw: Series,
    ways: [Series; WAYS.len()],
    alone: Series,
    relay_cpu: Series,
    sessions_cpu: Series,
    broker_cpu: Series,
    settled: u64,
    out_of_order: u64,
    again: u64,
    memory: f64,
}

/// Runs it.
///
/// # Errors
/// What the servers or the relay say.
pub async fn run(rig: &Rig, options: &Options) -> anyhow::Result<Report> {
    let mut report = Report::new("drain");
    rig.describe(&mut report).await?;
    rig.make_queues(&[EFFECT]).await?;
    let fill = Fill {
        events: options.events,
        tenants: options.tenants,
        aggregates: options.aggregates.max(options.tenants),
        payload: options.payload,
        ..Fill::standard(rig.seed)
    };
    let alone = Fill {
        events: options.alone,
        tenants: 1,
        aggregates: 1,
        prefix: "alone",
        ..fill
    };
    fill.add_tenants(&rig.database, "paused").await?;
    alone.add_tenants(&rig.database, "paused").await?;
    let relays = [Program::start(rig, "relay", &[]).await?];
    let mut measured = Measured::default();
    for _ in 0..options.repeat {
        repetition(rig, &relays, fill, (&mut measured, &mut report)).await?;
        one_aggregate(rig, &relays, alone, (&mut measured, &mut report)).await?;
    }
    for relay in relays {
        measured.memory = relay.peak_memory_mib();
        relay.stop().await?;
    }
    tell(options, &measured, &mut report);
    Ok(report)
}

async fn repetition(
    rig: &Rig,
    relays: &[Program],
    fill: Fill,
    (measured, report): (&mut Measured, &mut Report),
) -> anyhow::Result<()> {
    clear(&rig.database).await?;
    fill.write(&rig.database).await?;
    settle_down(&rig.database).await?;
    let messages = messages(&rig.database, RAW.min(fill.events)).await?;
    let mut ceiling = Ceiling::default();
    ceiling.round(&rig.broker, &messages).await?;
    rig.purge(QUEUE).await?;
    let broker = rig.broker_cpu().await?;
    let metered = let_go(rig, relays, fill, (measured, report)).await?;
    let broker = rig.broker_cpu().await?.saturating_sub(broker);
    measured.relay_cpu.push(metered.relay_us);
    measured.sessions_cpu.push(metered.sessions_us);
    measured
        .broker_cpu
        .push(broker.as_secs_f64() * 1e6 / figure(fill.events.max(1)));
    check(rig, fill, measured, report).await?;
    ceiling.round(&rig.broker, &messages).await?;
    rig.purge(QUEUE).await?;
    measured.relay.push(metered.rate(fill));
    measured.raw.push(ceiling.best());
    for (series, rate) in measured.ways.iter_mut().zip(ceiling.rates()) {
        series.push(rate);
    }
    Ok(())
}

async fn one_aggregate(
    rig: &Rig,
    relays: &[Program],
    fill: Fill,
    (measured, report): (&mut Measured, &mut Report),
) -> anyhow::Result<()> {
    clear(&rig.database).await?;
    fill.write(&rig.database).await?;
    let metered = let_go(rig, relays, fill, (measured, report)).await?;
    measured.alone.push(metered.rate(fill));
    check(rig, fill, measured, report).await
}

async fn let_go(
    rig: &Rig,
    relays: &[Program],
    fill: Fill,
    (measured, report): (&mut Measured, &mut Report),
) -> anyhow::Result<Metered> {
    let metered = metered(rig, relays, fill, report).await?;
    measured.settled += metered.drained.published;
    Ok(metered)
}

async fn check(
    rig: &Rig,
    fill: Fill,
    measured: &mut Measured,
    report: &mut Report,
) -> anyhow::Result<()> {
    let arrivals = read(&rig.broker, QUEUE, fill.events).await?;
    arrivals.judge(fill.events, report);
    measured.out_of_order += arrivals.out_of_order;
    measured.again += arrivals.again;
    Ok(())
}

fn tell(options: &Options, measured: &Measured, report: &mut Report) {
    let ratio = measured.relay.over(&measured.raw);
    report.note(format!(
        "{} events of {} bytes, {} tenants, {} aggregates, {} repetitions; each between two rounds \
         of raw publishing",
        options.events, options.payload, options.tenants, options.aggregates, options.repeat
    ));
    report.row("relay", &measured.relay, "events/s", "");
    report.row("raw (R_pub: the best way)", &measured.raw, "msgs/s", "");
    for ((channels, window), series) in WAYS.iter().zip(&measured.ways) {
        let what = format!("  raw, {channels} channel(s) of window {window}");
        report.row(what, series, "msgs/s", "");
    }
    report.row("relay / R_pub", &ratio, "", ">= 0.85");
    report.row("one aggregate alone", &measured.alone, "events/s", "");
    report.row("CPU of the relay", &measured.relay_cpu, "µs/event", "");
    report.row(
        "CPU of its sessions",
        &measured.sessions_cpu,
        "µs/event",
        "",
    );
    report.row("CPU of RabbitMQ", &measured.broker_cpu, "µs/event", "");
    let memory = std::iter::once(measured.memory).collect();
    report.row("most memory of the relay", &memory, "MiB", "< 64");
    report.figure("ratio", ratio.median());
    report.figure("r_pub_per_s", measured.raw.median().round());
    report.figure("relay_per_s", measured.relay.median().round());
    report.figure("one_aggregate_per_s", measured.alone.median().round());
    report.fact(
        "events",
        (options.events + options.alone) * u64::from(options.repeat),
    );
    report.fact("settled", measured.settled);
    report.fact("out_of_order", measured.out_of_order);
    report.fact("duplicates", measured.again);
    report.figure("relay_cpu_us", measured.relay_cpu.median());
    report.figure("sessions_cpu_us", measured.sessions_cpu.median());
    report.figure("broker_cpu_us", measured.broker_cpu.median());
    report.figure("memory_mib", measured.memory);
}
