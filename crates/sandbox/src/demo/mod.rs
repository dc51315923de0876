//! The demo: the three processes on real HTTP traffic, a relay killed at the worst moment, the
//! broker bounced under load, and the ledger over all of it.

pub(crate) mod cast;
mod faults;
pub(crate) mod story;
mod summary;
pub(crate) mod traffic;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::ledger::{self, Tap};
use crate::options::SandboxOptions;
use crate::pair::Sandbox;
use cast::{Addresses, Cast};
use story::{Counts, Story};
pub use summary::Summary;
use traffic::{Plan, Traffic};

/// How long nothing may move before the drain is given up; the ledger then says what is lost.
const STANDSTILL: Duration = Duration::from_secs(60);

/// How long the traffic takes at least, so that there is load while things are broken.
const TRAFFIC_LASTS: Duration = Duration::from_secs(14);

const LOOK: Duration = Duration::from_millis(100);

/// What to play.
#[derive(Debug, Clone, clap::Parser)]
#[command(
    name = "demo",
    version,
    about = "Runs TicketFlow on private servers, breaks things, and checks every event"
)]
pub struct DemoOptions {
    /// How many tickets are made; about as many updates come on top.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub tickets: u32,
    /// Decides what the traffic looks like; the same seed makes the same requests.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Leave the servers up at the end and print their URLs.
    #[arg(long)]
    pub keep: bool,
}

/// Plays the demo. What it finds is in the summary; an error is a demo that could not be played.
///
/// # Errors
/// If servers or processes do not start, or a fault could not be brought about.
pub async fn run(options: &DemoOptions) -> anyhow::Result<Summary> {
    let began = Instant::now();
    let story = Story::start();
    story.say("starting a private PostgreSQL and a private RabbitMQ");
    let sandbox = Arc::new(Sandbox::start(SandboxOptions::default()).await?);
    story.say(&format!("they run in {}", sandbox.path().display()));
    let addresses = Addresses {
        database_url: sandbox.database_url(crate::DATABASE),
        amqp_url: sandbox.amqp_url(crate::VHOST),
    };
    let mut cast = Cast::gather(&sandbox, addresses, &story).await?;
    let tap = Tap::start(&sandbox.amqp_url(crate::VHOST), &cast.tapped()?).await?;
    let counting = story.follow(&sandbox.database_url(crate::DATABASE));

    let plan = Plan {
        tickets: options.tickets,
        seed: options.seed,
        lasts: TRAFFIC_LASTS,
        waits_for_bounce: true,
    };
    let traffic = Traffic::start(plan, &cast)?;
    story.say(&format!(
        "traffic: {} tickets of {} tenants, with updates in between",
        options.tickets,
        cast.tenants.len()
    ));
    faults::kill_a_relay(&sandbox, &mut cast, &tap, &traffic, &story).await?;
    faults::bounce_the_broker(&sandbox, &traffic, &story).await?;
    let committed = traffic.finish().await?;
    story.say(&format!(
        "traffic is over: {} events committed",
        committed.events.len()
    ));
    drain(&sandbox, &tap, &story, STANDSTILL).await?;
    drop(counting);

    story.say("stopping all processes with SIGTERM");
    let database = sandbox.database(crate::DATABASE).await?;
    cast.stop().await?;
    story.say("checking every event: driver, outbox, wire, receipts, effects");
    let report = ledger::check(&database, &committed, &tap.wire()).await?;
    drop((database, tap));
    let summary = Summary::new(&report, options, began.elapsed());
    story.end(&report);
    if options.keep {
        keep(sandbox)?;
    }
    Ok(summary)
}

/// Waits until everything is published and applied, or nothing moves any more for so long.
pub(crate) async fn drain(
    sandbox: &Sandbox,
    tap: &Tap,
    story: &Story,
    standstill: Duration,
) -> anyhow::Result<()> {
    story.say("draining");
    let database = sandbox.database(crate::DATABASE).await?;
    let mut last = (Counts::default(), 0);
    let mut moved = Instant::now();
    loop {
        let counts = Counts::read(&database).await?;
        let on_wire = tap.events();
        if counts.is_drained() && on_wire as u64 >= counts.recorded {
            return Ok(());
        }
        if (counts.clone(), on_wire) != last {
            last = (counts, on_wire);
            moved = Instant::now();
        }
        if moved.elapsed() > standstill {
            story.say("nothing moves any more; the ledger says what is missing");
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn keep(sandbox: Arc<Sandbox>) -> anyhow::Result<()> {
    println!("DATABASE_URL={}", sandbox.database_url(crate::DATABASE));
    println!("AMQP_URL={}", sandbox.amqp_url(crate::VHOST));
    let sandbox = Arc::into_inner(sandbox).context("the servers are still in use")?;
    let folder = sandbox.keep()?;
    ensure!(folder.is_dir(), "{} is gone", folder.display());
    println!(
        "to end them: TICKETFLOW_SANDBOX={} just down",
        folder.display()
    );
    Ok(())
}
