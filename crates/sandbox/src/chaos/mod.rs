//! Chaos: the demo's cast and traffic, with faults drawn at random for as long as asked, and the
//! ledger over all of it. The processes reach both servers through fault proxies.

mod fault;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde::Serialize;

use crate::demo::cast::{Addresses, Cast};
use crate::demo::drain;
use crate::demo::story::Story;
use crate::demo::traffic::{Plan, Traffic};
use crate::ledger::{self, Tap};
use crate::options::SandboxOptions;
use crate::pair::Sandbox;
use crate::proxy::FaultProxy;
use fault::{Fault, Stage};

/// How long nothing may move at the end: longer than any time-out of the processes.
const STANDSTILL: Duration = Duration::from_secs(90);

/// Tickets made in a second.
const TICKETS_PER_SECOND: u32 = 20;

/// What to play.
#[derive(Debug, Clone, clap::Parser)]
#[command(
    name = "chaos",
    version,
    about = "Breaks servers, links and processes at random under load, and checks every event"
)]
pub struct ChaosOptions {
    /// How long things are broken.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Decides which faults come, and what the traffic looks like.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct ChaosSummary {
    name: &'static str,
    faults: u32,
    seed: u64,
    seconds: f64,
    #[serde(flatten)]
    ledger: serde_json::Map<String, serde_json::Value>,
    #[serde(skip)]
    is_clean: bool,
}

impl ChaosSummary {
    /// Whether nothing is lost, invented, doubled or out of order.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.is_clean
    }
}

impl std::fmt::Display for ChaosSummary {
    /// One JSON object.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| std::fmt::Error)?;
        formatter.write_str(&json)
    }
}

/// Plays it. What it finds is in the summary; an error is a run that could not be played.
///
/// # Errors
/// If servers or processes do not start, or not again after a fault.
pub async fn run(options: &ChaosOptions) -> anyhow::Result<ChaosSummary> {
    let began = Instant::now();
    let story = Story::start();
    story.say("starting a private PostgreSQL and a private RabbitMQ");
    let sandbox = Arc::new(Sandbox::start(SandboxOptions::default()).await?);
    let to_database = FaultProxy::start(sandbox.postgres().port()).await?;
    let to_broker = FaultProxy::start(sandbox.rabbitmq().port()).await?;
    let addresses = Addresses {
        database_url: sandbox.database_url_through(to_database.port(), crate::DATABASE),
        amqp_url: sandbox.amqp_url_through(to_broker.port(), crate::VHOST),
    };
    let cast = Cast::gather(&sandbox, addresses, &story).await?;
    let tap = Tap::start(&sandbox.amqp_url(crate::VHOST), &cast.tapped()?).await?;
    let counting = story.follow(&sandbox.database_url(crate::DATABASE));
    let plan = Plan {
        tickets: options.seconds * TICKETS_PER_SECOND,
        seed: options.seed,
        lasts: Duration::from_secs(options.seconds.into()),
        waits_for_bounce: false,
    };
    let traffic = Traffic::start(plan, &cast)?;
    let mut stage = Stage {
        sandbox: Arc::clone(&sandbox),
        cast,
        to_database,
        to_broker,
    };
    let faults = break_things(&mut stage, options, &story).await?;
    let committed = traffic.finish().await?;
    drain(&sandbox, &tap, &story, STANDSTILL).await?;
    drop(counting);
    stage.cast.stop().await?;
    let database = sandbox.database(crate::DATABASE).await?;
    let report = ledger::check(&database, &committed, &tap.wire()).await?;
    story.end(&report);
    Ok(ChaosSummary {
        name: "chaos",
        faults,
        seed: options.seed,
        seconds: (began.elapsed().as_secs_f64() * 10.0).round() / 10.0,
        ledger: report.to_json(),
        is_clean: report.is_clean(),
    })
}

/// One fault after another until the time is over; how many there were.
async fn break_things(
    stage: &mut Stage,
    options: &ChaosOptions,
    story: &Story,
) -> anyhow::Result<u32> {
    let mut random = Rng::with_seed(options.seed);
    let until = Instant::now() + Duration::from_secs(options.seconds.into());
    let mut faults = 0;
    while Instant::now() < until {
        let calm = Duration::from_millis(random.u64(200..2500));
        tokio::time::sleep(calm).await;
        let fault = Fault::draw(&mut random);
        story.breaking(fault.words());
        stage.suffer(fault, &mut random).await?;
        stage.heal(story).await?;
        story.mended("all is up");
        faults += 1;
    }
    Ok(faults)
}
