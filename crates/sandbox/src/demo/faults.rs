//! What the demo breaks: a relay at the worst moment, and the broker under load.

use std::time::Duration;

use anyhow::{Context, bail};
use event::Identity;
use tokio::time::{Instant, timeout};
use tokio_postgres::Client;

use super::cast::Cast;
use super::story::Story;
use super::traffic::Traffic;
use crate::ledger::Tap;
use crate::pair::Sandbox;

/// When in the traffic things are broken.
const KILL_AFTER: f64 = 0.1;
const BOUNCE_AFTER: f64 = 0.4;

/// How long the right moment for the kill is waited for.
const HUNT: Duration = Duration::from_secs(20);

/// How long the killed relay's event may take to come again.
const AGAIN: Duration = Duration::from_secs(20);

/// How long a statement that a relay has sent before it was paused may take to be done.
const IN_FLIGHT: Duration = Duration::from_millis(50);

/// The pool whose relays are hunted.
const POOL: &str = "shared";

/// Kills a relay with SIGKILL at a moment when one of its events has been seen on the wire and its
/// row is still pending; looks for that moment until it is there.
pub(super) async fn kill_a_relay(
    sandbox: &Sandbox,
    cast: &mut Cast,
    tap: &Tap,
    traffic: &Traffic,
    story: &Story,
) -> anyhow::Result<()> {
    traffic.reached(KILL_AFTER).await;
    story.breaking(
        "waiting for an event that is on the wire and not yet settled, to kill its relay",
    );
    let database = sandbox.database(crate::DATABASE).await?;
    let deadline = Instant::now() + HUNT;
    let mut tries = 0;
    loop {
        if Instant::now() > deadline {
            bail!("no relay was caught between confirm and settle in {tries} tries");
        }
        tries += 1;
        let event = next_arrival(tap).await?;
        if !kill_its_relay(cast, &database, &event).await? {
            continue;
        }
        story.mended(&format!(
            "killed a relay with SIGKILL: event {} is on the wire, its row is pending (try {tries})",
            event.event_id
        ));
        let came_again = came_again(tap, &database, &event).await?;
        cast.add_relay(sandbox, POOL).await?;
        if came_again {
            story.say("another relay has taken over and sent that event again");
            return Ok(());
        }
        story.say("its settle had been on the way after all: once more");
    }
}

/// Takes the broker down with SIGKILL while traffic goes on, and up again.
pub(super) async fn bounce_the_broker(
    sandbox: &Sandbox,
    traffic: &Traffic,
    story: &Story,
) -> anyhow::Result<()> {
    traffic.reached(BOUNCE_AFTER).await;
    story.breaking("killing the broker under load; events pile up in the outbox");
    sandbox.rabbitmq().kill9().await?;
    traffic.broker_went_down();
    sandbox.rabbitmq().start().await?;
    story.mended("the broker is back");
    Ok(())
}

/// The next event that comes over the wire from now on.
async fn next_arrival(tap: &Tap) -> anyhow::Result<Identity> {
    let mut arrivals = tap.arrivals();
    let arrival = timeout(HUNT, arrivals.recv()).await;
    arrival
        .context("nothing comes over the wire")?
        .context("the tap is gone")
}

/// Pauses the relays at once, looks, and kills the one that holds the event's lane if its row is
/// still pending; otherwise lets them go on.
async fn kill_its_relay(
    cast: &mut Cast,
    database: &Client,
    event: &Identity,
) -> anyhow::Result<bool> {
    for (_, relay) in cast.relays.iter().filter(|(pool, _)| *pool == POOL) {
        relay.pause()?;
    }
    let mut holder = holder_if_pending(cast, database, event).await?;
    if holder.is_some() {
        // What was sent before the pause is done by now, or the row is still pending after it.
        tokio::time::sleep(IN_FLIGHT).await;
        holder = holder_if_pending(cast, database, event).await?;
    }
    let killed = holder.map(|holder| cast.relays.remove(holder));
    for (_, relay) in &cast.relays {
        relay.resume()?;
    }
    match killed {
        None => Ok(false),
        Some((_, relay)) => {
            relay.kill9().await?;
            Ok(true)
        }
    }
}

/// Which relay holds the event's lane, if its row is pending.
async fn holder_if_pending(
    cast: &Cast,
    database: &Client,
    event: &Identity,
) -> anyhow::Result<Option<usize>> {
    let sql = include_str!("../sql/demo_pending.sql");
    let Some(row) = database.query_opt(sql, &[&event.event_id]).await? else {
        return Ok(None);
    };
    let (pending, holder): (bool, Option<String>) = (row.get(0), row.get(1));
    // A lease is held as host/process.
    let pid = holder
        .as_deref()
        .and_then(|holder| holder.rsplit('/').next()?.parse().ok());
    let held_by = |pid: i32| {
        let mut relays = cast.relays.iter();
        relays.position(|(pool, relay)| *pool == POOL && relay.pid() == pid)
    };
    Ok(pid.filter(|_| pending).and_then(held_by))
}

/// Waits for a copy of the event; false if its row was settled without one.
async fn came_again(tap: &Tap, database: &Client, event: &Identity) -> anyhow::Result<bool> {
    let deadline = Instant::now() + AGAIN;
    while Instant::now() < deadline {
        // In this order: a relay that sends it again settles it afterwards.
        let settled = !is_pending(database, event).await?;
        let mut seen = tap.seen();
        let copied = seen.wait_for(|_| tap.copies(event) > 0);
        match timeout(IN_FLIGHT * 10, copied).await {
            Ok(copied) => return copied.map(|_| true).context("the tap is gone"),
            Err(_) if settled => return Ok(false),
            Err(_) => {}
        }
    }
    bail!("the killed relay's event did not come again")
}

async fn is_pending(database: &Client, event: &Identity) -> anyhow::Result<bool> {
    let sql = include_str!("../sql/demo_pending.sql");
    Ok(database.query_one(sql, &[&event.event_id]).await?.get(0))
}
