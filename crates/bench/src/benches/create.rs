//! `create`: tickets over HTTP, against the same rows written by `pgbench`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use futures_util::future::try_join_all;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::http::Client;
use crate::pgbench;
use crate::program::{Program, free_address};
use crate::progress;
use crate::report::Report;
use crate::rig::Rig;
use crate::statistics::{Latencies, Series, rate};

/// Tenants that create, and the key each of them has.
const TENANTS: usize = 16;

/// Sizes of the bench.
#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 16)]
    pub clients: usize,
    /// How long each measurement lasts.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// How often both are measured.
    #[arg(long, default_value_t = 5)]
    pub repeat: u32,
}

/// Runs it.
///
/// # Errors
/// What the servers, the producer or `pgbench` say.
pub async fn run(rig: &Rig, options: &Options) -> anyhow::Result<Report> {
    let mut report = Report::new("create");
    rig.describe(&mut report).await?;
    add_tenants(rig).await?;
    let lasting = Duration::from_secs(options.seconds);
    let address = free_address()?;
    let listen = address.to_string();
    let producer = Program::start(rig, "producer", &[("listen", &listen)]).await?;
    let (mut http, mut p99) = <(Series, Series)>::default();
    let (mut bare, mut least) = <(Series, Series)>::default();
    // Both meet caches that are warm.
    measure(address, options.clients, Duration::from_secs(1)).await?;
    for script in [pgbench::TRANSACTION, pgbench::STATEMENT] {
        pgbench::run(rig, script, options.clients, Duration::from_secs(2)).await?;
    }
    let mut created = 0;
    let bar = progress::bar("create tickets", u64::from(options.repeat) * 3);
    for _ in 0..options.repeat {
        for (script, series) in [
            (pgbench::TRANSACTION, &mut bare),
            (pgbench::STATEMENT, &mut least),
        ] {
            series.push(pgbench::run(rig, script, options.clients, lasting).await?);
            bar.inc(1);
        }
        let before = tickets(rig).await?;
        let latencies = measure(address, options.clients, lasting).await?;
        let written = tickets(rig).await? - before;
        bar.inc(1);
        created += latencies.count();
        http.push(rate(latencies.count(), lasting));
        p99.push(latencies.quantile_ms(0.99));
        if written
            != (
                i64::try_from(latencies.count())?,
                i64::try_from(latencies.count())?,
            )
        {
            report.fault(format!(
                "{} answers 201, {written:?} tickets and events",
                latencies.count()
            ));
        }
    }
    bar.finish_and_clear();
    let memory = producer.peak_memory_mib();
    producer.stop().await?;
    report.note(format!(
        "{} clients, {} s each, {} repetitions",
        options.clients, options.seconds, options.repeat
    ));
    tell(&mut report, &http, &bare, &least, &p99);
    report.row(
        "most memory of the producer",
        &std::iter::once(memory).collect(),
        "MiB",
        "",
    );
    report.figure("memory_mib", memory);
    report.fact("created", created);
    Ok(report)
}

/// The rates, against both ways of writing the same rows without a producer.
fn tell(report: &mut Report, http: &Series, bare: &Series, least: &Series, p99: &Series) {
    let (ratio, of_least) = (http.over(bare), http.over(least));
    report.row("producer, POST /v1/tickets", http, "tickets/s", "");
    report.row("pgbench, three inserts", bare, "tickets/s", "");
    report.row("pgbench, one statement", least, "tickets/s", "");
    report.row("producer / three inserts", &ratio, "", ">= 0.6");
    report.row("producer / one statement", &of_least, "", "");
    report.row("producer, p99", p99, "ms", "");
    report.figure("ratio", ratio.median());
    report.figure("ratio_one_statement", of_least.median());
    report.figure("producer_per_s", http.median().round());
    report.figure("pgbench_per_s", bare.median().round());
    report.figure("p99_ms", p99.median());
}

async fn add_tenants(rig: &Rig) -> anyhow::Result<()> {
    let statement = include_str!("../sql/add_tenants.sql");
    rig.database
        .execute(statement, &[&"c", &i64::try_from(TENANTS)?, &"active"])
        .await?;
    for number in 0..TENANTS {
        let hash = Sha256::digest(key(number));
        let statement = include_str!("../sql/add_key.sql");
        rig.database
            .execute(statement, &[&tenant(number), &hash.as_slice()])
            .await?;
    }
    Ok(())
}

fn tenant(number: usize) -> String {
    format!("c{number:05}")
}

fn key(number: usize) -> String {
    format!("bench-key-of-tenant-{number:05}")
}

/// All clients at once for a while; the latency of each ticket made.
async fn measure(
    address: SocketAddr,
    clients: usize,
    lasting: Duration,
) -> anyhow::Result<Latencies> {
    let until = Instant::now() + lasting;
    let running = (0..clients).map(|number| {
        let client =
            AbortOnDropHandle::new(tokio::spawn(create(address, key(number % TENANTS), until)));
        async move { client.await? }
    });
    let mut all = Latencies::default();
    for one in try_join_all(running).await? {
        all.merge(&one);
    }
    Ok(all)
}

async fn create(address: SocketAddr, key: String, until: Instant) -> anyhow::Result<Latencies> {
    let mut client = Client::connect(address).await?;
    let mut latencies = Latencies::default();
    let body = format!(
        r#"{{"subject":"A ticket of the bench","body":"{}","priority":"normal"}}"#,
        "lorem ipsum ".repeat(20)
    );
    while Instant::now() < until {
        let start = Instant::now();
        match client.create(&key, &body).await? {
            201 => latencies.push(start.elapsed()),
            status => bail!("the producer answers {status}: {}", client.answer()),
        }
    }
    Ok(latencies)
}

/// Tickets and events there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count(i64, i64);

impl std::ops::Sub for Count {
    type Output = (i64, i64);

    fn sub(self, before: Self) -> (i64, i64) {
        (self.0 - before.0, self.1 - before.1)
    }
}

async fn tickets(rig: &Rig) -> anyhow::Result<Count> {
    let row = rig
        .database
        .query_one(include_str!("../sql/tickets.sql"), &[])
        .await?;
    Ok(Count(row.get(0), row.get(1)))
}
