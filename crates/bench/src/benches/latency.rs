//! `latency`: from commit to the broker and to the effect, against a bare commit, publish, confirm.
//!
//! A relay's confirm cannot be seen from outside its process, so its series end when the message
//! reaches a subscriber of a queue like the effect's. The broker delivers when it confirms; the
//! floor is measured both ways, and the difference is printed.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;

use super::EFFECT;
use crate::cpu::{Meter, sessions};
use crate::load::{Load, Recorded};
use crate::program::Program;
use crate::progress;
use crate::report::Report;
use crate::rig::Rig;
use crate::statistics::{Latencies, Series};
use crate::tap::Tap;

/// Takes the same events as the effect's queue.
const TAP: (&str, &str) = ("tap", "ticket.#");
const TAP_QUEUE: &str = "ticketflow.shared.tap";

/// Tenants of the load, and those whose events the bench publishes itself.
const TENANTS: usize = 20;

/// How long the last events may take to arrive.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sizes of the bench.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Events a second; the first is the one the JSON line's `p50_ms` is about.
    #[arg(long, value_delimiter = ',', default_values_t = [200.0, 1000.0])]
    pub rates: Vec<f64>,
    /// How long each series lasts.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Bytes of each payload.
    #[arg(long, default_value_t = 500)]
    pub payload: usize,
    /// How often all is measured.
    #[arg(long, default_value_t = 3)]
    pub repeat: u32,
}

/// The quantiles of one series in each repetition.
#[derive(Debug, Default)]
struct Quantiles {
    p50: Series,
    p99: Series,
}

impl Quantiles {
    fn push(&mut self, latencies: &Latencies) {
        self.p50.push(latencies.quantile_ms(0.5));
        self.p99.push(latencies.quantile_ms(0.99));
    }

    fn tell(&self, what: &str, reach: (&str, &str), report: &mut Report) {
        report.row(format!("{what}, p50"), &self.p50, "ms", reach.0);
        report.row(format!("{what}, p99"), &self.p99, "ms", reach.1);
    }

    fn figures(&self, prefix: &str, report: &mut Report) {
        report.figure(&format!("{prefix}p50_ms"), self.p50.median());
        report.figure(&format!("{prefix}p99_ms"), self.p99.median());
    }
}

/// Everything measured at one rate.
#[derive(Debug, Default)]
struct AtRate {
    floor: Quantiles,
    floor_arrival: Quantiles,
    hinted: Quantiles,
    polled: Quantiles,
    effect: Quantiles,
}

/// Runs it.
///
/// # Errors
/// What the servers or the processes say.
pub async fn run(rig: &Rig, options: &Options) -> anyhow::Result<Report> {
    let mut report = Report::new("latency");
    rig.describe(&mut report).await?;
    rig.make_queues(&[EFFECT, TAP]).await?;
    add_tenants(rig, "t", "active").await?;
    add_tenants(rig, "f", "paused").await?;
    let tap = Tap::open(&rig.broker, TAP_QUEUE).await?;
    let relay = Program::start(rig, "relay", &[]).await?;
    let consumer = Program::start(rig, "consumer", &[("effects", "search")]).await?;
    let idle = idle_share(rig, &relay).await?;
    let mut all: Vec<AtRate> = options.rates.iter().map(|_| AtRate::default()).collect();
    for _ in 0..options.repeat {
        for (rate, measured) in options.rates.iter().zip(&mut all) {
            let load = Load {
                rate: *rate,
                lasting: Duration::from_secs(options.seconds),
                prefix: "t",
                tenants: TENANTS,
                aggregates: 0,
                event_type: "ticket.updated",
                payload: options.payload,
                hint: true,
                seed: rig.seed,
            };
            at_rate(rig, &tap, load, (measured, &mut report)).await?;
        }
    }
    consumer.stop().await?;
    relay.stop().await?;
    tell(options, &all, idle, &mut report);
    Ok(report)
}

async fn at_rate(
    rig: &Rig,
    tap: &Tap,
    load: Load,
    (measured, report): (&mut AtRate, &mut Report),
) -> anyhow::Result<()> {
    let floor = Load {
        prefix: "f",
        hint: false,
        ..load
    };
    let polled = Load {
        hint: false,
        ..load
    };
    let recorded = series(rig, tap, floor, (true, &mut *report)).await?;
    measured
        .floor
        .push(&since_commit(&recorded, |one| one.confirmed));
    measured.floor_arrival.push(&arrivals(tap, &recorded));
    let recorded = series(rig, tap, load, (false, &mut *report)).await?;
    measured.hinted.push(&arrivals(tap, &recorded));
    measured
        .effect
        .push(&effects(rig, &recorded, report).await?);
    let recorded = series(rig, tap, polled, (false, report)).await?;
    measured.polled.push(&arrivals(tap, &recorded));
    Ok(())
}

/// Records for a while and waits until the tap has it all.
async fn series(
    rig: &Rig,
    tap: &Tap,
    load: Load,
    (publishing, report): (bool, &mut Report),
) -> anyhow::Result<Vec<Recorded>> {
    let bar = progress::bar(format!("{} events/s", load.rate), load.lasting.as_secs());
    let before = tap.look(|heard| heard.at.len());
    let recorded = load.run(rig, publishing).await?;
    tap.wait(before + recorded.len(), PATIENCE).await?;
    let heard = |one: &&Recorded| tap.look(|heard| heard.at.contains_key(&one.event_id));
    let arrived = recorded.iter().filter(heard).count();
    if arrived != recorded.len() {
        report.fault(format!(
            "{} events were recorded, {arrived} arrived",
            recorded.len()
        ));
    }
    bar.finish_and_clear();
    Ok(recorded)
}

fn since_commit(
    recorded: &[Recorded],
    end: impl Fn(&Recorded) -> Option<DateTime<Utc>>,
) -> Latencies {
    let mut latencies = Latencies::default();
    for one in recorded {
        if let Some(end) = end(one) {
            // The relay may be quicker than the answer to the commit: that is no time at all.
            latencies.push((end - one.committed).to_std().unwrap_or_default());
        }
    }
    latencies
}

fn arrivals(tap: &Tap, recorded: &[Recorded]) -> Latencies {
    tap.look(|heard| since_commit(recorded, |one| heard.at.get(&one.event_id).copied()))
}

/// From the answer to the commit of the event to the commit of its effect, by the server's clock,
/// which is the same machine's.
async fn effects(
    rig: &Rig,
    recorded: &[Recorded],
    report: &mut Report,
) -> anyhow::Result<Latencies> {
    let ids: Vec<uuid::Uuid> = recorded.iter().map(|one| one.event_id).collect();
    let statement = include_str!("../sql/effects.sql");
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let rows = rig.database.query(statement, &[&EFFECT.0, &ids]).await?;
        if rows.len() < ids.len() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        }
        if rows.len() != ids.len() {
            report.fault(format!(
                "{} events were recorded, {} applied",
                ids.len(),
                rows.len()
            ));
        }
        let at: std::collections::HashMap<uuid::Uuid, DateTime<Utc>> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        return Ok(since_commit(recorded, |one| at.get(&one.event_id).copied()));
    }
}

/// The share of a core that relay and sessions use when there is nothing to do.
async fn idle_share(rig: &Rig, relay: &Program) -> anyhow::Result<(f64, f64)> {
    let lasting = Duration::from_secs(5);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let backends = sessions(&rig.database, "relay").await?;
    let (process, servers) = (Meter::start(vec![relay.pid()]), Meter::start(backends));
    tokio::time::sleep(lasting).await;
    let share = |used: Duration| 100.0 * used.as_secs_f64() / lasting.as_secs_f64();
    Ok((share(process.read()), share(servers.read())))
}

async fn add_tenants(rig: &Rig, prefix: &str, state: &str) -> anyhow::Result<()> {
    let statement = include_str!("../sql/add_tenants.sql");
    let tenants = i64::try_from(TENANTS)?;
    rig.database
        .execute(statement, &[&prefix, &tenants, &state])
        .await?;
    Ok(())
}

fn tell(options: &Options, all: &[AtRate], idle: (f64, f64), report: &mut Report) {
    report.note(format!(
        "{} s a series, {} tenants, {} bytes, {} repetitions; the hint as the producer sends it",
        options.seconds, TENANTS, options.payload, options.repeat
    ));
    report.fact(
        "events_per_s",
        options.rates.first().copied().unwrap_or(0.0),
    );
    for (place, (rate, measured)) in options.rates.iter().zip(all).enumerate() {
        let at = |what: &str| format!("{rate:.0}/s: {what}");
        let within = |series: &Series, more: f64| format!("< {:.1}", series.median() + more);
        let reach = (
            within(&measured.floor.p50, 1.0),
            within(&measured.floor.p99, 5.0),
        );
        let reach = (reach.0.as_str(), reach.1.as_str());
        measured
            .floor
            .tell(&at("floor, commit to confirm"), ("", ""), report);
        measured
            .floor_arrival
            .tell(&at("floor, commit to arrival"), ("", ""), report);
        measured
            .hinted
            .tell(&at("relay, hint on, to arrival"), reach, report);
        measured
            .polled
            .tell(&at("relay, hint off, to arrival"), ("", ""), report);
        measured
            .effect
            .tell(&at("commit to effect, hint on"), ("", ""), report);
        let prefix = match place {
            0 => String::new(),
            _ => format!("at_{rate:.0}_"),
        };
        measured.hinted.figures(&prefix, report);
        measured.floor.figures(&format!("{prefix}floor_"), report);
        measured
            .floor_arrival
            .figures(&format!("{prefix}floor_arrival_"), report);
        measured
            .polled
            .figures(&format!("{prefix}hint_off_"), report);
        measured.effect.figures(&format!("{prefix}effect_"), report);
    }
    let percent = |value: f64| std::iter::once(value).collect::<Series>();
    report.row(
        "idle relay, its process",
        &percent(idle.0),
        "% of a core",
        "< 1",
    );
    report.row(
        "idle relay, its sessions",
        &percent(idle.1),
        "% of a core",
        "",
    );
    report.figure("idle_cpu_percent", idle.0);
    report.figure("idle_sessions_cpu_percent", idle.1);
}
