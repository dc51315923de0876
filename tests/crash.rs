//! A process that is killed at any seam of the protocol loses nothing and breaks no order.
//!
//! The relay under test is this test program, started again as a process of its own: it runs
//! [`relay_process`] and dies, or is stopped, where `TICKETFLOW_CRASH_POINT` says.

use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::relaying::{PATIENCE, Rig, assert_first_arrivals_in_order, config};

const DATABASE_URL: &str = "TICKETFLOW_CRASH_DATABASE_URL";
const AMQP_URL: &str = "TICKETFLOW_CRASH_AMQP_URL";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "not a test: the process that the others start"]
async fn relay_process() {
    let (Ok(database_url), Ok(amqp_url)) = (std::env::var(DATABASE_URL), std::env::var(AMQP_URL))
    else {
        return;
    };
    crate::relaying::log();
    let config = config(&database_url, &amqp_url, &FLAGS);
    relay::run(config, CancellationToken::new())
        .await
        .expect("it runs until it is killed");
}

const FLAGS: [&str; 2] = ["--batch-size", "40"];

fn relay_that_ends_at(rig: &Rig, point: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args([
            "crash::relay_process",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("TICKETFLOW_CRASH_POINT", point)
        .env(DATABASE_URL, &rig.site.database_url)
        .env(AMQP_URL, &rig.site.amqp_url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("a process")
}

async fn until_killed(child: &mut Child) {
    let status = tokio::time::timeout(PATIENCE, child.wait()).await;
    let status = status.expect("it reaches the point").expect("its status");
    assert_eq!(status.signal(), Some(9), "{status}");
}

async fn assert_all_there_in_order(rig: &Rig, events: usize) -> usize {
    let wire = rig.wire("ticketflow.shared.tap").await;
    assert_first_arrivals_in_order(&wire);
    let distinct: HashSet<_> = wire.iter().map(|event| &event.identity).collect();
    assert_eq!(distinct.len(), events);
    let spent =
        "select count(*) from ticketflow.outbox_events where attempts > 0 or state <> 'published'";
    assert_eq!(rig.count(spent).await, 0);
    wire.len() - events
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_each_seam_the_relay_loses_nothing_and_keeps_the_order() {
    let rig = Rig::start("seams").await;
    rig.queue("tap", &["ticket.#"]).await;
    // Each is passed a few times before, so that work of several batches is under way.
    for point in [
        "claimed-not-published:1",
        "publishing:2",
        "confirmed-not-settled:3",
        "settled:1",
    ] {
        rig.record(30, 10).await;
        until_killed(&mut relay_that_ends_at(&rig, point)).await;
        let relay = rig.relay(&FLAGS);
        rig.until_published(300).await;
        relay.stop().await;
        let copies = assert_all_there_in_order(&rig, 300).await;
        // Four workers with a batch of 40 each, and one more each that is being settled.
        assert!(copies <= 4 * 2 * 40, "{point}: {copies} copies");
        rig.execute("truncate ticketflow.outbox_events", &[]).await;
        rig.execute("truncate ticketflow.outbox_aggregates", &[])
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_kills_whoever_publishes_it_is_parked_and_the_others_go_out() {
    let rig = Rig::start("deadly").await;
    rig.queue("tap", &["ticket.#"]).await;
    rig.record(1, 1).await;
    // Two claims end unsettled; from then on tries are written first, and three of them stay
    // unsettled too.
    for _ in 0..2 {
        until_killed(&mut relay_that_ends_at(&rig, "publishing")).await;
    }
    for tries in 1..=3 {
        until_killed(&mut relay_that_ends_at(&rig, "publishing")).await;
        let written = "select publish_tries::bigint from ticketflow.outbox_events";
        assert_eq!(rig.count(written).await, tries);
    }
    rig.record(5, 1).await;
    let relay = rig.relay(&FLAGS);
    let parked = "select count(*) from ticketflow.outbox_events \
                  where state = 'parked' and last_error like 'publishing it ended the process%'";
    rig.until(parked, 1).await;
    // The first event of the same aggregate is behind the parked one.
    rig.until(
        "select count(*) from ticketflow.outbox_events where state = 'published'",
        4,
    )
    .await;
    rig.until(
        "select count(*) from ticketflow.outbox_events where state = 'pending' and held",
        1,
    )
    .await;
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_was_stopped_past_its_lease_publishes_and_settles_nothing() {
    let rig = Rig::start("stopped").await;
    rig.queue("tap", &["ticket.#"]).await;
    rig.record(30, 1).await;
    let mut stopped = relay_that_ends_at(&rig, "claimed-not-published:stop");
    let leased = "select count(*) from ticketflow.outbox_lanes where lease_token is not null";
    rig.until_at_least(leased, 1).await;
    // Another one has its lanes when the lease is over.
    let relay = rig.relay(&FLAGS);
    rig.until_published(30).await;
    let pid = stopped.id().expect("it is there").to_string();
    let continued = Command::new("kill").args(["-CONT", &pid]).status().await;
    assert!(continued.expect("kill").success());
    // It goes on where it was, and then with the next event like the other.
    rig.record(1, 1).await;
    rig.until_published(31).await;
    relay.stop().await;
    assert_eq!(
        assert_all_there_in_order(&rig, 31).await,
        0,
        "no copy of anything"
    );
    stopped.kill().await.expect("killed");
}
