//! What was committed arrives: whatever is committed when, whatever comes back, whoever is late.

use std::collections::BTreeSet;
use std::time::Duration;

use event::PoolName;
use outbox::{ClaimRequest, ClaimedBatch, Resume, Settled, Settlement};
use relay::{PgStore, Store};
use runtime::database::{Database, DatabaseConfig};
use uuid::Uuid;

mod consuming;
mod killed;

use crate::relaying::{Rig, assert_first_arrivals_in_order};

#[tokio::test]
async fn what_is_recorded_is_published_once_and_in_order() {
    let rig = Rig::start("published").await;
    rig.queue("tap", &["ticket.#"]).await;
    rig.record(50, 20).await;
    let relay = rig.relay(&[]);
    rig.until_published(1000).await;
    relay.stop().await;
    let events = rig.wire("ticketflow.shared.tap").await;
    assert_eq!(events.len(), 1000);
    assert_first_arrivals_in_order(&events);
    let leased = "select count(*) from ticketflow.outbox_lanes where lease_token is not null";
    assert_eq!(
        rig.count(leased).await,
        0,
        "a clean stop gives the lanes back"
    );
    let spent =
        "select count(*) from ticketflow.outbox_events where attempts > 0 or pool <> 'shared'";
    assert_eq!(rig.count(spent).await, 0);
}

#[tokio::test]
async fn a_returned_event_is_never_taken_for_another_one() {
    let rig = Rig::start("returned").await;
    rig.queue("tap", &["ticket.#"]).await;
    rig.execute(
        "select ticketflow.record_event('default', 'ticket', 'a' || n, \
           case when n % 7 = 0 then 'nobody.takes' else 'ticket.updated' end, ''::bytea) \
         from generate_series(1, 4200) as n",
        &[],
    )
    .await;
    let relay = rig.relay(&["--backoff-first", "1h", "--backoff-most", "1h"]);
    rig.until(
        "select count(*) from ticketflow.outbox_events where state = 'published'",
        3600,
    )
    .await;
    let refused = "select count(*) from ticketflow.outbox_events \
                   where state = 'pending' and attempts >= 1 and last_error like 'unroutable%' \
                     and event_type = 'nobody.takes'";
    rig.until(refused, 600).await;
    relay.stop().await;
    let wire: BTreeSet<Uuid> = rig
        .wire("ticketflow.shared.tap")
        .await
        .iter()
        .map(|event| event.identity.event_id)
        .collect();
    let published = "select event_id from ticketflow.outbox_events where state = 'published'";
    let published = rig.database.query(published, &[]).await.expect("rows");
    assert_eq!(
        wire,
        published
            .iter()
            .map(|row| row.get(0))
            .collect::<BTreeSet<Uuid>>()
    );
    assert_eq!(
        rig.count("select count(*) from ticketflow.outbox_holds")
            .await,
        600
    );
}

#[tokio::test]
async fn a_late_commit_with_a_lower_position_is_published_too() {
    let rig = Rig::start("late").await;
    rig.queue("tap", &["ticket.#"]).await;
    let relay = rig.relay(&[]);
    let mut late = rig.site.database().await.expect("a session");
    let record =
        "select ticketflow.record_event('default', 'ticket', $1, 'ticket.updated', ''::bytea)";
    let mut rolled_back = rig.site.database().await.expect("a session");
    let never = rolled_back.transaction().await.expect("begun");
    never.execute(record, &[&"never"]).await.expect("recorded");
    let open = late.transaction().await.expect("begun");
    open.execute(record, &[&"first"]).await.expect("recorded");
    rig.execute(record, &[&"second"]).await;
    rig.until_published(1).await;
    open.commit().await.expect("committed");
    never.rollback().await.expect("rolled back");
    rig.until_published(2).await;
    relay.stop().await;
    let wire = rig.wire("ticketflow.shared.tap").await;
    let order: Vec<&str> = wire
        .iter()
        .map(|event| event.aggregate.aggregate_id.as_str())
        .collect();
    assert_eq!(order, ["second", "first"]);
}

/// Holds its positions for a while before it commits; every fifth writer rolls back.
async fn write_late(session: tokio_postgres::Client, writer: i32) {
    let end = if writer % 5 == 0 {
        "rollback"
    } else {
        "commit"
    };
    for _ in 0..10 {
        let transaction = format!(
            "begin; \
             select ticketflow.record_event('default', 'ticket', 'w{writer}-' || n, 'ticket.updated', ''::bytea) \
             from generate_series(1, 10) as n; \
             select pg_sleep(random() * 0.1); {end}"
        );
        session.batch_execute(&transaction).await.expect("recorded");
    }
}

#[tokio::test]
async fn many_writers_that_commit_late_lose_nothing() {
    let rig = Rig::start("writers").await;
    rig.queue("tap", &["ticket.#"]).await;
    let relay = rig.relay(&[]);
    let mut writers = Vec::new();
    for writer in 0..20 {
        let session = rig.site.database().await.expect("a session");
        writers.push(tokio::spawn(write_late(session, writer)));
    }
    for writer in writers {
        writer.await.expect("a writer");
    }
    rig.until_published(16 * 100).await;
    relay.stop().await;
    let wire = rig.wire("ticketflow.shared.tap").await;
    assert_eq!(wire.len(), 1600);
    assert_first_arrivals_in_order(&wire);
}

/// Two relays' ways into one outbox, without their processes.
struct Rivals {
    database: Database,
    store: PgStore,
    request: ClaimRequest,
}

impl Rivals {
    fn of(rig: &Rig) -> Self {
        let mut config = DatabaseConfig::for_url(&rig.site.database_url, "rival");
        config.role = Some("ticketflow_relay".to_owned());
        let database = Database::open(config).expect("a URL");
        Self {
            store: PgStore::new(database.clone(), Duration::from_secs(5)),
            database,
            request: ClaimRequest {
                pools: Some(vec![PoolName::parse("shared").expect("valid")]),
                except: Vec::new(),
                owner: "rival".to_owned(),
                lease: Duration::from_millis(200),
                lanes: 16,
                events: 100,
                bytes: 1 << 20,
            },
        }
    }

    /// Claims, again and again until the other's lease has run out.
    async fn claim(&self) -> ClaimedBatch {
        loop {
            let claimed = self
                .store
                .claim(&self.request, &Resume::default())
                .await
                .expect("claimed");
            if let Some(batch) = claimed.batch {
                return batch;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn settle(&self, batch: ClaimedBatch, settlement: Settlement) -> Settled {
        let settlements = vec![settlement; batch.events().len()];
        self.store
            .settle(&batch.settled_as(settlements))
            .await
            .expect("settled")
    }
}

#[tokio::test]
async fn whoever_lost_the_lease_settles_nothing() {
    let rig = Rig::start("fenced").await;
    rig.queue("tap", &["ticket.#"]).await;
    rig.record(5, 1).await;
    let rivals = Rivals::of(&rig);
    let refused = Settlement::Retried {
        delay: Duration::ZERO,
        reason: "refused".to_owned(),
    };
    let slow = rivals.claim().await;
    let quick = rivals.claim().await;
    assert_eq!(rivals.settle(quick, refused).await.retried, 5);
    let settled = rivals.settle(slow, Settlement::Published).await;
    assert_eq!((settled.lease_lost, settled.published), (5, 0));
    let as_left = "select count(*) from ticketflow.outbox_events \
                   where state = 'pending' and held and attempts = 1 and last_error = 'refused'";
    assert_eq!(rig.count(as_left).await, 5);

    // And the other way round: published is final.
    rivals.store.let_go_due().await.expect("let go");
    let slow = rivals.claim().await;
    let quick = rivals.claim().await;
    assert_eq!(
        rivals.settle(quick, Settlement::Published).await.published,
        5
    );
    let parked = Settlement::Parked {
        reason: "too late".to_owned(),
    };
    assert_eq!(rivals.settle(slow, parked).await.lease_lost, 5);
    rig.until_published(5).await;
    assert_eq!(
        rig.count("select count(*) from ticketflow.outbox_holds")
            .await,
        0
    );
}

#[tokio::test]
async fn confirmed_for_a_queue_that_was_made_anew_counts_as_nothing() {
    let rig = Rig::start("stale").await;
    rig.queue("tap", &["ticket.#"]).await;
    rig.record(3, 1).await;
    let rivals = Rivals::of(&rig);
    let batch = rivals.claim().await;
    rig.execute(
        "update ticketflow.effect_queues set generation = generation + 1",
        &[],
    )
    .await;
    let settled = rivals.settle(batch, Settlement::Published).await;
    assert_eq!((settled.stale, settled.published), (3, 0));
    let claimed = rivals
        .store
        .claim(&rivals.request, &Resume::default())
        .await
        .expect("asked");
    assert!(
        claimed.batch.is_none(),
        "nothing is claimed until the queue is refilled"
    );
    rig.execute(
        "update ticketflow.effect_queues set declared_generation = generation, ready_generation = generation",
        &[],
    )
    .await;
    assert_eq!(
        rivals
            .settle(rivals.claim().await, Settlement::Published)
            .await
            .published,
        3
    );
}

#[tokio::test]
async fn a_lease_counts_from_when_it_was_taken_not_from_when_its_transaction_began() {
    let rig = Rig::start("clock").await;
    rig.queue("tap", &["ticket.#"]).await;
    rig.record(1, 1).await;
    let mut rivals = Rivals::of(&rig);
    rivals.request.lease = Duration::from_secs(2);
    let request = &rivals.request;
    let waited = rivals
        .database
        .transaction(Duration::from_secs(10), async |transaction| {
            // As it would by waiting for a lock.
            transaction
                .batch_execute("select pg_sleep(2.5)")
                .await
                .map_err(outbox::OutboxError::from)?;
            let claimed = outbox::claim(transaction, request, &Resume::default()).await?;
            Ok::<_, relay::StoreError>(claimed.batch)
        });
    let batch = waited.await.expect("claimed").expect("a batch");
    let other = rivals
        .store
        .claim(request, &Resume::default())
        .await
        .expect("asked");
    assert!(other.batch.is_none(), "its lease has just begun");
    assert_eq!(
        rivals.settle(batch, Settlement::Published).await.published,
        1
    );
}
