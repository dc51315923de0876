//! A consumer that is killed at any seam of its protocol: each effect once all the same.
//!
//! The consumer under test is this test program, started again as a process of its own: it runs
//! [`consumer_process`] and dies where `TICKETFLOW_CRASH_POINT` says.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use inbox::{Delivery, Inbox, Outcome};
use runtime::settings::{Invocation, Sources};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::consuming::{PATIENCE, Stage, delivered, shared, ticket_event};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "not a test: the process that the others start"]
async fn consumer_process() {
    let arguments = ["--admin", "127.0.0.1:0", "--suspect-lease", "300ms"];
    let sources = Sources {
        environment: std::env::vars_os().collect(),
        ..Sources::of(&arguments, &[])
    };
    let Ok(Invocation::Run(settings)) = consumer::PROCESS.read(&sources) else {
        return;
    };
    let config = consumer::Config::from_settings(&settings).expect("a config");
    let running = consumer::run(config, CancellationToken::new());
    running.await.expect("it runs until it is killed");
}

fn consumer_that_ends_at(stage: &Stage, point: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["delivery::killed::consumer_process", "--exact", "--ignored"])
        .env("TICKETFLOW_CRASH_POINT", point)
        .env("DATABASE_URL", &stage.site.database_url)
        .env("AMQP_URL", &stage.site.amqp_url)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .expect("a process")
}

async fn until_killed(child: &mut Child) {
    let status = tokio::time::timeout(PATIENCE, child.wait()).await;
    let status = status.expect("it reaches the point").expect("its status");
    assert_eq!(status.signal(), Some(9), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_each_seam_each_effect_is_there_once() {
    let stage = Stage::new("consumer_seams").await;
    let seams = [
        "receipt-not-applied",
        "applied-not-committed",
        "committed-not-acked",
    ];
    let mut versions = 0;
    let ticket = Uuid::now_v7();
    stage.ticket("acme", ticket).await;
    for seam in seams {
        // At the first batch, and after some of the effects are through with theirs.
        for passed in 0..3 {
            let events: Vec<_> = (versions + 1..=versions + 10)
                .map(|version| ticket_event("acme", ticket, version))
                .collect();
            versions += 10;
            stage.publish(&events).await;
            until_killed(&mut consumer_that_ends_at(
                &stage,
                &format!("{seam}:{passed}"),
            ))
            .await;
            let consumer = stage.consumer(&[]).await;
            let receipts = "select count(*) from ticketflow.effect_receipts";
            stage.until(receipts, 3 * versions).await;
            stage
                .until("select count(*) from ticketflow.deferred_deliveries", 0)
                .await;
            consumer.stop().await;
            let tasks = "select count(*) from ticketflow.business_tasks";
            assert_eq!(stage.count(tasks).await, versions, "{seam}:{passed}");
            let trail = "select count(*) from (
              select version, row_number() over (order by entry_id) as place
              from ticketflow.audit_entries) as entry where version = place";
            assert_eq!(stage.count(trail).await, versions, "{seam}:{passed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspect_that_kills_twice_is_parked_and_never_tried_a_third_time() {
    let stage = Stage::new("suspect_kills").await;
    let event = ticket_event("acme", Uuid::now_v7(), 1);
    let database = runtime::database::Database::open(stage.config(&[]).database).unwrap();
    let inbox = Inbox::new(database.pool().clone(), inbox::Policy::default());
    let delivery = Delivery::read(shared(), delivered(&event));
    let search = consumer::effects::Search::default();
    let outcome = inbox.suspect(&search, &delivery).await.unwrap();
    assert_eq!(outcome, Outcome::Suspect);
    for _ in 0..2 {
        until_killed(&mut consumer_that_ends_at(&stage, "suspect-try-written")).await;
    }
    let consumer = stage.consumer(&["--suspect-lease", "300ms"]).await;
    let parked = "select count(*) from ticketflow.deferred_deliveries
                  where state = 'parked' and reason = 'kills' and kills = 2";
    stage.until(parked, 1).await;
    consumer.stop().await;
    assert_eq!(
        stage
            .count("select count(*) from ticketflow.search_documents")
            .await,
        0
    );
}
