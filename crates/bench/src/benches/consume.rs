//! `consume`: how fast a full queue becomes effects, against a bare loop that writes the same rows.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context;
use broker::Encoded;
use clap::Args;
use event::Message;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{EFFECT, QUEUE};
use crate::bare;
use crate::fill::{Fill, messages, settle_down};
use crate::program::Program;
use crate::progress;
use crate::report::Report;
use crate::rig::Rig;
use crate::statistics::{Series, rate};

/// How many messages are encoded at a time.
const CHUNK: usize = 20_000;

/// Receipts this far from complete may take this long.
const STUCK: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(250);

/// Transactions at once, where each message has its own.
const AT_ONCE: usize = 8;

/// Sizes of the bench.
#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// Messages in the queue.
    #[arg(long, default_value_t = 200_000)]
    pub events: u64,
    /// Tickets they are about.
    #[arg(long, default_value_t = 20_000)]
    pub aggregates: u64,
    /// Bytes of each payload.
    #[arg(long, default_value_t = 500)]
    pub payload: u32,
    /// Messages for the loop with one transaction each.
    #[arg(long, default_value_t = 20_000)]
    pub singles: u64,
    /// How often all is measured.
    #[arg(long, default_value_t = 3)]
    pub repeat: u32,
}

/// Who empties the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Consumers(usize),
    Batches,
    Singles,
}

/// Runs it.
///
/// # Errors
/// What the servers or the consumer say.
pub async fn run(rig: &Rig, options: &Options) -> anyhow::Result<Report> {
    let mut report = Report::new("consume");
    rig.describe(&mut report).await?;
    rig.make_queues(&[EFFECT]).await?;
    let fill = Fill {
        events: options.events,
        tenants: 100.min(options.aggregates),
        aggregates: options.aggregates,
        payload: options.payload,
        ..Fill::standard(rig.seed)
    };
    fill.add_tenants(&rig.database, "paused").await?;
    fill.write(&rig.database).await?;
    let all = messages(&rig.database, options.events).await?;
    rig.database
        .batch_execute("truncate ticketflow.outbox_events")
        .await?;
    let some = &all[..all.len().min(usize::try_from(options.singles)?)];
    let (mut consumer, mut batches, mut singles) = <(Series, Series, Series)>::default();
    let mut memory = Series::default();
    for _ in 0..options.repeat {
        batches.push(empty(rig, Who::Batches, &all, (&mut memory, &mut report)).await?);
        consumer.push(empty(rig, Who::Consumers(1), &all, (&mut memory, &mut report)).await?);
        singles.push(empty(rig, Who::Singles, some, (&mut memory, &mut report)).await?);
    }
    let ratio = consumer.over(&batches);
    report.note(format!(
        "{} messages of {} bytes about {} tickets, {} repetitions",
        options.events, options.payload, options.aggregates, options.repeat
    ));
    report.row("consumer, effect search", &consumer, "events/s", "");
    report.row("bare loop, batches of 200", &batches, "events/s", "");
    report.row("consumer / bare loop", &ratio, "", ">= 0.9");
    report.row(
        "one transaction a message, 8 at once",
        &singles,
        "events/s",
        "",
    );
    report.row("consumer / that", &consumer.over(&singles), "", ">= 3");
    report.row("most memory of the consumer", &memory, "MiB", "< 64");
    report.figure("ratio", ratio.median());
    report.figure("consumer_per_s", consumer.median().round());
    report.figure("bare_loop_per_s", batches.median().round());
    report.figure("one_by_one_per_s", singles.median().round());
    report.figure("ratio_to_one_by_one", consumer.over(&singles).median());
    report.figure("memory_mib", memory.max());
    report.fact("events", options.events);
    report.fact("out_of_order", 0);
    Ok(report)
}

/// So many consumers empty a queue that was filled before they started. Events a second.
///
/// # Errors
/// What the servers or the consumers say.
pub(crate) async fn by_consumers(
    rig: &Rig,
    number: usize,
    all: &[Message],
    report: &mut Report,
) -> anyhow::Result<f64> {
    empty(
        rig,
        Who::Consumers(number),
        all,
        (&mut Series::default(), report),
    )
    .await
}

/// Fills the queue, lets somebody empty it, checks receipts and documents. Events a second.
async fn empty(
    rig: &Rig,
    who: Who,
    all: &[Message],
    (memory, report): (&mut Series, &mut Report),
) -> anyhow::Result<f64> {
    rig.database
        .batch_execute(include_str!("../sql/clear_effects.sql"))
        .await?;
    settle_down(&rig.database).await?;
    let publisher = rig.broker.raw_publisher().await?;
    let bar = progress::bar("fill the queue", all.len() as u64);
    for part in all.chunks(CHUNK) {
        publisher.publish(Encoded::of(part)?, 512).await?;
        bar.inc(part.len() as u64);
    }
    bar.finish_and_clear();
    let (expected, before) = (all.len() as u64, written(rig).await?);
    match who {
        Who::Consumers(number) => {
            let mut consumers = Vec::new();
            for number in 0..number {
                let name = format!("bench-{number}");
                let settings = [("effects", EFFECT.0), ("name", name.as_str())];
                consumers.push(Program::start(rig, "consumer", &settings).await?);
            }
            wait(rig, expected, before).await?;
            for consumer in consumers {
                memory.push(consumer.peak_memory_mib());
                consumer.stop().await?;
            }
        }
        Who::Batches => by_loops(rig, (1, bare::BATCH), (expected, before)).await?,
        Who::Singles => by_loops(rig, (AT_ONCE, 1), (expected, before)).await?,
    }
    judge(rig, all, report).await
}

/// Empties the queue with so many bare loops, each with batches of a size.
async fn by_loops(
    rig: &Rig,
    (loops, batch): (usize, usize),
    (expected, before): (u64, u64),
) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let mut running = Vec::new();
    for _ in 0..loops {
        let session = rig.site.database().await?;
        let prefetch = u16::try_from(2 * batch)?;
        let deliveries = rig.broker.deliveries(QUEUE, prefetch).await?;
        let work = bare::consume(session, deliveries, batch);
        let stop = stop.clone();
        running.push(AbortOnDropHandle::new(tokio::spawn(async move {
            stop.run_until_cancelled(work).await.unwrap_or(Ok(()))
        })));
    }
    wait(rig, expected, before).await?;
    stop.cancel();
    for one in running {
        one.await?.context("a bare loop")?;
    }
    Ok(())
}

/// Waits until there are so many receipts, or no more come.
async fn wait(rig: &Rig, expected: u64, before: u64) -> anyhow::Result<()> {
    let bar = progress::bar("empty the queue", expected);
    let (mut last, mut moved) = (0, Instant::now());
    while moved.elapsed() < STUCK {
        sleep(LOOK).await;
        // The statistics cost nothing; the count comes when they say that it may be reached.
        let written = written(rig).await?.saturating_sub(before);
        if written >= expected && times(rig).await?.0 >= expected {
            break;
        }
        if written != last {
            (last, moved) = (written, Instant::now());
        }
        bar.set_position(written);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Receipts ever written, by the statistics.
async fn written(rig: &Rig) -> anyhow::Result<u64> {
    let row = rig
        .database
        .query_one(include_str!("../sql/receipts_written.sql"), &[])
        .await?;
    Ok(u64::try_from(row.get::<_, i64>(0))?)
}

/// How many receipts there are, and the time from the first commit to the last.
async fn times(rig: &Rig) -> anyhow::Result<(u64, Duration)> {
    let row = rig
        .database
        .query_one(include_str!("../sql/receipts.sql"), &[])
        .await?;
    let seconds: f64 = row.get(1);
    Ok((
        u64::try_from(row.get::<_, i64>(0))?,
        Duration::from_secs_f64(seconds.max(1e-6)),
    ))
}

/// Every event one receipt, every ticket's newest version in its document; and how fast.
async fn judge(rig: &Rig, all: &[Message], report: &mut Report) -> anyhow::Result<f64> {
    let (receipts, took) = times(rig).await?;
    if receipts != all.len() as u64 {
        report.fault(format!(
            "{} events were in the queue, {receipts} receipts",
            all.len()
        ));
    }
    let rows = rig
        .database
        .query(include_str!("../sql/documents.sql"), &[])
        .await?;
    let documents: HashMap<(String, String), i64> = rows
        .iter()
        .map(|row| ((row.get(0), row.get(1)), row.get(2)))
        .collect();
    let wrong = newest(all)
        .into_iter()
        .filter(|(key, version)| documents.get(key) != Some(version));
    let wrong = wrong.count();
    if wrong > 0 {
        report.fault(format!(
            "{wrong} documents are not at their ticket's last version"
        ));
    }
    Ok(rate(receipts, took))
}

/// The highest version of each ticket, by the messages' own headers.
fn newest(all: &[Message]) -> HashMap<(String, String), i64> {
    let mut newest = HashMap::new();
    for message in all {
        let header = |wanted: &str| {
            let found = message.headers.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let key = (
            header("cloudEvents:tenantid"),
            header("cloudEvents:subject"),
        );
        let version = header("cloudEvents:aggregateversion").parse().unwrap_or(0);
        let last: &mut i64 = newest.entry(key).or_default();
        *last = version.max(*last);
    }
    newest
}
