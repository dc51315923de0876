//! `fairness`: what twenty quiet tenants feel of a noisy one, and it of them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use tokio::time::{Instant, sleep_until};

use super::{EFFECT, QUEUE};
use crate::drain::{drain, set_state, wait};
use crate::fill::{Fill, clear, settle_down};
use crate::load::{Load, Recorded};
use crate::program::Program;
use crate::report::Report;
use crate::rig::Rig;
use crate::statistics::{Latencies, Series, figure, rate};
use crate::tap::Tap;
use crate::wire::read;

/// The quiet tenants' events have a type, and so a queue, of their own to listen at.
const QUIET: (&str, &str) = ("quiet", "quiet.#");
const QUIET_QUEUE: &str = "ticketflow.shared.quiet";
const QUIET_TENANTS: usize = 20;

const NOISY: &str = "noisy";

/// How long the last quiet events may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often the noisy tenant records, where it does so steadily.
const TICK: Duration = Duration::from_millis(100);

/// Sizes of the bench.
#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// The noisy tenant's standing backlog.
    #[arg(long, default_value_t = 200_000)]
    pub events: u64,
    /// Events a second of all quiet tenants together.
    #[arg(long, default_value_t = 100.0)]
    pub quiet_rate: f64,
    /// How long the quiet tenants are measured alone, and beside the noisy one at half its rate.
    #[arg(long, default_value_t = 8)]
    pub seconds: u64,
    /// How often all is measured.
    #[arg(long, default_value_t = 5)]
    pub repeat: u32,
}

#[derive(Debug, Default)]
struct Measured {
    noisy_alone: Series,
    noisy_beside: Series,
    alone: Latencies,
    saturated: Latencies,
    half: Latencies,
}

/// Runs it.
///
/// # Errors
/// What the servers or the relay say.
pub async fn run(rig: &Rig, options: &Options) -> anyhow::Result<Report> {
    let mut report = Report::new("fairness");
    rig.describe(&mut report).await?;
    rig.make_queues(&[EFFECT, QUIET]).await?;
    let noisy = Fill {
        events: options.events,
        tenants: 1,
        prefix: NOISY,
        ..Fill::standard(rig.seed)
    };
    noisy.add_tenants(&rig.database, "paused").await?;
    let statement = include_str!("../sql/add_tenants.sql");
    let quiet = i64::try_from(QUIET_TENANTS)?;
    rig.database
        .execute(statement, &[&"quiet", &quiet, &"active"])
        .await?;
    let tap = Tap::open(&rig.broker, QUIET_QUEUE).await?;
    let relay = Program::start(rig, "relay", &[]).await?;
    let mut measured = Measured::default();
    for _ in 0..options.repeat {
        let bench = Bench {
            rig,
            options,
            tap: &tap,
        };
        bench.repetition(noisy, &mut measured, &mut report).await?;
    }
    relay.stop().await?;
    tell(options, &measured, &mut report);
    report.fact(
        "out_of_order",
        tap.look(|heard| heard.arrivals.out_of_order),
    );
    Ok(report)
}

struct Bench<'a> {
    rig: &'a Rig,
    options: &'a Options,
    tap: &'a Tap,
}

impl Bench<'_> {
    async fn repetition(
        &self,
        noisy: Fill,
        measured: &mut Measured,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let database = &self.rig.database;
        let recorded = self.quiet(self.options.seconds).await?;
        self.hear(&recorded, None, &mut measured.alone, report)
            .await?;

        self.prepare(noisy).await?;
        let alone = drain(database, NOISY).await?;
        let alone_rate = rate(noisy.events, alone.took);
        measured.noisy_alone.push(alone_rate);
        self.check(noisy.events, report).await?;

        self.prepare(noisy).await?;
        // Longer than the drain can take; what was committed after its end is left out.
        let seconds = (2.0 * alone.took.as_secs_f64()).ceil();
        let quiet = self.quiet(seconds.max(1.0) as u64);
        let (beside, recorded) = tokio::try_join!(drain(database, NOISY), quiet)?;
        measured.noisy_beside.push(rate(noisy.events, beside.took));
        self.hear(
            &recorded,
            Some(beside.last),
            &mut measured.saturated,
            report,
        )
        .await?;
        self.check(noisy.events, report).await?;

        clear(database).await?;
        set_state(database, NOISY, "active").await?;
        let feed = self.feed(noisy, alone_rate / 2.0);
        let (fed, recorded) = tokio::try_join!(feed, self.quiet(self.options.seconds))?;
        wait(database).await?;
        set_state(database, NOISY, "paused").await?;
        self.hear(&recorded, None, &mut measured.half, report)
            .await?;
        self.check(fed, report).await
    }

    async fn prepare(&self, noisy: Fill) -> anyhow::Result<()> {
        set_state(&self.rig.database, NOISY, "paused").await?;
        clear(&self.rig.database).await?;
        noisy.write(&self.rig.database).await?;
        settle_down(&self.rig.database).await
    }

    async fn quiet(&self, seconds: u64) -> anyhow::Result<Vec<Recorded>> {
        let load = Load {
            rate: self.options.quiet_rate,
            lasting: Duration::from_secs(seconds),
            prefix: "quiet",
            tenants: QUIET_TENANTS,
            aggregates: 0,
            event_type: "quiet.spoke",
            payload: 500,
            hint: true,
            seed: self.rig.seed,
        };
        load.run(self.rig, false).await
    }

    /// The latencies of the quiet events committed before `until`; all of them must arrive.
    async fn hear(
        &self,
        recorded: &[Recorded],
        until: Option<DateTime<Utc>>,
        latencies: &mut Latencies,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let missing = |recorded: &[Recorded]| {
            let heard =
                |one: &&Recorded| self.tap.look(|heard| !heard.at.contains_key(&one.event_id));
            recorded.iter().filter(heard).count()
        };
        let deadline = Instant::now() + PATIENCE;
        while missing(recorded) > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if missing(recorded) > 0 {
            report.fault(format!("{} quiet events did not arrive", missing(recorded)));
        }
        for one in recorded
            .iter()
            .filter(|one| until.is_none_or(|until| one.committed < until))
        {
            let arrived = self.tap.look(|heard| heard.at.get(&one.event_id).copied());
            if let Some(arrived) = arrived {
                latencies.push((arrived - one.committed).to_std().unwrap_or_default());
            }
        }
        Ok(())
    }

    async fn check(&self, expected: u64, report: &mut Report) -> anyhow::Result<()> {
        let arrivals = read(&self.rig.broker, QUEUE, expected).await?;
        arrivals.judge(expected, report);
        Ok(())
    }

    /// Records for the noisy tenant at a steady rate; how many in all.
    async fn feed(&self, noisy: Fill, per_second: f64) -> anyhow::Result<u64> {
        let session = self.rig.site.database().await?;
        let ticks = self.options.seconds * 10;
        let start = Instant::now();
        let mut fed = 0;
        for tick in 0..ticks {
            sleep_until(start + TICK * u32::try_from(tick)?).await;
            let due = (per_second * TICK.as_secs_f64() * figure(tick + 1)) as u64;
            let part = Fill {
                events: due.saturating_sub(fed),
                first: fed,
                ..noisy
            };
            if part.events > 0 {
                part.write(&session).await?;
                fed += part.events;
            }
        }
        Ok(fed)
    }
}

fn tell(options: &Options, measured: &Measured, report: &mut Report) {
    let ratio = measured.noisy_beside.over(&measured.noisy_alone);
    let one = |value: f64| std::iter::once(value).collect::<Series>();
    let p99 = |latencies: &Latencies| latencies.quantile_ms(0.99);
    let (alone, saturated, half) = (
        p99(&measured.alone),
        p99(&measured.saturated),
        p99(&measured.half),
    );
    report.note(format!(
        "one tenant with {} pending rows beside {QUIET_TENANTS} quiet ones with {} events/s \
         together; {} repetitions, quiet latencies (commit to arrival) of all of them",
        options.events, options.quiet_rate, options.repeat
    ));
    report.row("noisy, alone", &measured.noisy_alone, "events/s", "");
    report.row(
        "noisy, beside the quiet",
        &measured.noisy_beside,
        "events/s",
        "",
    );
    report.row("noisy beside / alone", &ratio, "", ">= 0.8");
    report.row("quiet p99, alone", &one(alone), "ms", "");
    report.row(
        "quiet p99, beside the saturating noisy",
        &one(saturated),
        "ms",
        "< 60",
    );
    let most = format!("< {:.1}", 1.5 * alone);
    report.row("quiet p99, noisy at half its rate", &one(half), "ms", &most);
    report.figure("ratio", ratio.median());
    report.figure("p99_ms", saturated);
    report.figure("alone_p99_ms", alone);
    report.figure("half_p99_ms", half);
    report.figure("noisy_alone_per_s", measured.noisy_alone.median().round());
    report.figure("noisy_per_s", measured.noisy_beside.median().round());
    report.fact("quiet_events", measured.saturated.count());
}
