//! `growth`: what an event costs with more backlog, more tenants, and more published rows before.

use clap::Args;

use super::{EFFECT, QUEUE};
use crate::drain::metered;
use crate::fill::{Fill, clear, settle_down};
use crate::program::Program;
use crate::report::Report;
use crate::rig::Rig;
use crate::statistics::Series;
use crate::wire::{Arrivals, read_on};

/// Sizes of the bench.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Pending rows, at 100 tenants; also 5000000, by hand.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000])]
    pub backlogs: Vec<u64>,
    /// Tenants, at 100,000 pending rows.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 10_000])]
    pub tenants: Vec<u64>,
    /// Published rows before, for the second half.
    #[arg(long, default_value_t = 1_000_000)]
    pub published: u64,
    /// How often each is measured.
    #[arg(long, default_value_t = 5)]
    pub repeat: u32,
}

/// Pending rows where tenants vary, and tenants where the backlog does.
const BACKLOG: u64 = 100_000;
const TENANTS: u64 = 100;

/// Prefixes of tenant ids: each situation has tenants of its own.
const PREFIXES: [&str; 16] = [
    "ga", "gb", "gc", "gd", "ge", "gf", "gg", "gh", "gi", "gj", "gk", "gl", "gm", "gn", "go", "gp",
];

/// A backlog over tenants, and what an event of it cost.
#[derive(Debug)]
struct Situation {
    fill: Fill,
    with_published: bool,
    arrivals: Arrivals,
    cpu: Series,
    relay: Series,
}

/// Runs it.
///
/// # Errors
/// What the servers or the relay say.
pub async fn run(rig: &Rig, options: &Options) -> anyhow::Result<Report> {
    let mut report = Report::new("growth");
    rig.describe(&mut report).await?;
    rig.make_queues(&[EFFECT]).await?;
    let mut situations = situations(rig.seed, options);
    for situation in &situations {
        situation.fill.add_tenants(&rig.database, "paused").await?;
    }
    let relays = [Program::start(rig, "relay", &[]).await?];
    for _ in 0..options.repeat {
        for situation in situations.iter_mut().filter(|one| !one.with_published) {
            clear(&rig.database).await?;
            situation.arrivals = Arrivals::default();
            measure(rig, &relays, situation, &mut report).await?;
        }
    }
    clear(&rig.database).await?;
    write_published(rig, options).await?;
    for _ in 0..options.repeat {
        for situation in situations.iter_mut().filter(|one| one.with_published) {
            measure(rig, &relays, situation, &mut report).await?;
        }
    }
    let [relay] = relays;
    let memory = relay.peak_memory_mib();
    relay.stop().await?;
    tell(options, &situations, memory, &mut report);
    Ok(report)
}

fn situations(seed: u64, options: &Options) -> Vec<Situation> {
    let by_backlog = options.backlogs.iter().map(|backlog| (*backlog, TENANTS));
    let by_tenants = options.tenants.iter().map(|tenants| (BACKLOG, *tenants));
    let sizes: Vec<(u64, u64)> = by_backlog.chain(by_tenants).collect();
    // A million pending rows after a million published ones is only the first again.
    let largest = sizes.iter().map(|(events, _)| *events).max().unwrap_or(0);
    let before = sizes
        .iter()
        .filter(|(events, _)| *events < largest || largest <= BACKLOG);
    let without = sizes.iter().map(|size| (*size, false));
    without
        .chain(before.map(|size| (*size, true)))
        .zip(PREFIXES)
        .map(|(((events, tenants), with_published), prefix)| Situation {
            fill: Fill {
                events,
                tenants,
                aggregates: tenants.max(2_000),
                prefix,
                ..Fill::standard(seed)
            },
            with_published,
            arrivals: Arrivals::default(),
            cpu: Series::default(),
            relay: Series::default(),
        })
        .collect()
}

async fn write_published(rig: &Rig, options: &Options) -> anyhow::Result<()> {
    let published = Fill {
        events: options.published,
        prefix: "old",
        state: "published",
        ..Fill::standard(rig.seed)
    };
    published.add_tenants(&rig.database, "paused").await?;
    published.write(&rig.database).await
}

async fn measure(
    rig: &Rig,
    relays: &[Program],
    situation: &mut Situation,
    report: &mut Report,
) -> anyhow::Result<()> {
    let fill = situation.fill;
    fill.write(&rig.database).await?;
    settle_down(&rig.database).await?;
    let metered = metered(rig, relays, fill, report).await?;
    situation.cpu.push(metered.cpu_us());
    situation.relay.push(metered.rate(fill));
    // Goes on with other numbers where the rows stay.
    situation.fill.first += fill.events;
    let expected = situation.arrivals.first + fill.events;
    read_on(&rig.broker, QUEUE, expected, &mut situation.arrivals).await?;
    situation.arrivals.judge(expected, report);
    Ok(())
}

fn tell(options: &Options, situations: &[Situation], memory: f64, report: &mut Report) {
    report.note(format!(
        "CPU of the relay and its sessions, in µs an event; {} repetitions; 500 bytes",
        options.repeat
    ));
    let mut costs = Vec::new();
    for situation in situations {
        let Fill {
            events, tenants, ..
        } = situation.fill;
        let before = match situation.with_published {
            true => format!(", {} published before", options.published),
            false => String::new(),
        };
        let what = format!("{events} pending, {tenants} tenants{before}");
        report.row(&what, &situation.cpu, "µs/event", "");
        costs.push(situation.cpu.median());
    }
    for situation in situations.iter().filter(|one| !one.with_published) {
        let Fill {
            events, tenants, ..
        } = situation.fill;
        report.row(
            format!("{events} pending, {tenants} tenants"),
            &situation.relay,
            "events/s",
            "",
        );
    }
    let costs: Series = costs.into_iter().collect();
    let ratio = costs.max() / costs.min().max(1e-9);
    report.row(
        "dearest / cheapest",
        &std::iter::once(ratio).collect(),
        "",
        "<= 1.2",
    );
    report.row(
        "most memory of the relay",
        &std::iter::once(memory).collect(),
        "MiB",
        "< 64",
    );
    report.figure("ratio", ratio);
    report.figure("cheapest_us", costs.min());
    report.figure("dearest_us", costs.max());
    report.figure("memory_mib", memory);
    let arrivals = situations.iter().map(|one| one.arrivals.out_of_order);
    report.fact("out_of_order", arrivals.sum::<u64>());
}
