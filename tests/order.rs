//! First arrivals of an aggregate come in the order in which its events were committed.

use crate::relaying::{PATIENCE, Rig, Running, assert_first_arrivals_in_order};

const WRITERS: i32 = 50;
const ROUNDS: i32 = 20;
const EVENTS: usize = 10_000;

/// All writers write the same 2,000 aggregates, each round other ones; some events are of a type
/// that nobody takes for now.
async fn write(session: tokio_postgres::Client, writer: i32) {
    for round in 0..ROUNDS {
        let record = "select ticketflow.record_event('default', 'ticket', 'a' || (n * 37 + $1 * 13) % 2000, \
                        case when n = 7 then 'late.updated' else 'ticket.updated' end, ''::bytea) \
                      from generate_series($2 * 10, $2 * 10 + 9) as n \
                      order by (n * 37 + $1 * 13) % 2000";
        session
            .execute(record, &[&writer, &round])
            .await
            .expect("recorded");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_relays_fifty_writers_refusals_a_stop_and_a_kill_keep_the_order() {
    let rig = Rig::start("order").await;
    rig.queue("tap", &["ticket.#"]).await;
    let flags = [
        "--batch-size",
        "64",
        "--backoff-first",
        "20ms",
        "--backoff-most",
        "100ms",
        "--lease",
        "1s",
    ];
    let mut one = rig.relay(&flags);
    let mut two = rig.relay(&flags);
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let session = rig.site.database().await.expect("a session");
        writers.push(tokio::spawn(write(session, writer)));
    }
    let published = "select count(*) from ticketflow.outbox_events where state = 'published'";
    rig.until_at_least(published, 1000).await;
    one.kill();
    one = rig.relay(&flags);
    rig.until_at_least(published, 3000).await;
    two.stop().await;
    two = rig.relay(&flags);
    for writer in writers {
        writer.await.expect("a writer");
    }
    rig.until_at_least(
        "select count(*) from ticketflow.outbox_events where attempts > 0",
        10,
    )
    .await;
    // Now somebody takes them: the queue is bound for all types.
    rig.execute(
        "update ticketflow.effect_queues set event_types = '{#}'",
        &[],
    )
    .await;
    rig.until_published(i64::from(WRITERS * ROUNDS * 10)).await;
    one.stop().await;
    two.stop().await;
    let wire = rig.wire("ticketflow.shared.tap").await;
    assert_first_arrivals_in_order(&wire);
    let distinct: std::collections::HashSet<_> = wire.iter().map(|event| &event.identity).collect();
    assert_eq!(distinct.len(), EVENTS);
    assert_eq!(
        rig.count("select count(*) from ticketflow.outbox_holds")
            .await,
        0
    );
    assert_eq!(
        rig.count("select count(*) from ticketflow.outbox_events where held")
            .await,
        0
    );
}

#[tokio::test]
async fn what_waits_behind_a_parked_head_leaves_the_claim_index_and_follows_when_it_is_done() {
    let rig = Rig::start("held").await;
    rig.queue("tap", &["ticket.#"]).await;
    let record = "select ticketflow.record_event('default', 'ticket', 'held', $1, ''::bytea)";
    rig.execute(record, &[&"nobody.takes"]).await;
    for _ in 0..250 {
        rig.execute(record, &[&"ticket.updated"]).await;
    }
    rig.record(5, 1).await;
    // Parked at its second refusal.
    let relay = rig.relay(&[
        "--park-after",
        "0s",
        "--backoff-first",
        "10ms",
        "--backoff-most",
        "10ms",
    ]);
    rig.until(
        "select count(*) from ticketflow.outbox_events where state = 'parked' and held",
        1,
    )
    .await;
    rig.until(
        "select count(*) from ticketflow.outbox_events where state = 'published'",
        5,
    )
    .await;
    rig.until(
        "select count(*) from ticketflow.outbox_events where state = 'pending' and held",
        250,
    )
    .await;
    let hold = "select count(*) from ticketflow.outbox_holds where until is null and lane = \
                (select lane from ticketflow.outbox_events where state = 'parked')";
    assert_eq!(rig.count(hold).await, 1);
    // A person redrives it once somebody takes it.
    rig.execute(
        "update ticketflow.effect_queues set event_types = '{#}'",
        &[],
    )
    .await;
    relay.stop().await;
    let relay = rig.relay(&[]);
    rig.until("select count(*) from ticketflow.effect_queues where verified_at > clock_timestamp() - interval '2 seconds'", 1).await;
    rig.execute(
        "update ticketflow.outbox_events set state = 'pending', held = false, first_refused_at = null \
         where state = 'parked'",
        &[],
    )
    .await;
    rig.until_published(256).await;
    relay.stop().await;
    assert_first_arrivals_in_order(&rig.wire("ticketflow.shared.tap").await);
    assert_eq!(
        rig.count("select count(*) from ticketflow.outbox_holds")
            .await,
        0
    );
}

#[tokio::test]
async fn delayed_events_go_when_they_are_due_and_wait_for_nobody() {
    let rig = Rig::start("delayed").await;
    rig.queue("tap", &["ticket.#"]).await;
    let delayed = "select ticketflow.record_event('default', 'ticket', 'a1', 'ticket.reminded', ''::bytea, \
                   available_at => clock_timestamp() + $1::float8 * interval '1 second')";
    rig.execute(delayed, &[&1.5_f64]).await;
    rig.execute(delayed, &[&3600_f64]).await;
    rig.record(1, 3).await;
    let relay = rig.relay(&[]);
    rig.until("select count(*) from ticketflow.outbox_events where state = 'published' and version is not null", 3).await;
    rig.until("select count(*) from ticketflow.outbox_events where state = 'published' and version is null", 1).await;
    let early = "select count(*) from ticketflow.outbox_events where published_at < available_at";
    assert_eq!(rig.count(early).await, 0);
    assert_eq!(
        rig.count("select count(*) from ticketflow.outbox_events where state = 'pending' and held")
            .await,
        1
    );
    relay.stop().await;
}

#[tokio::test]
async fn a_paused_tenant_records_and_is_not_claimed_and_a_pool_is_served_by_its_relays_alone() {
    let rig = Rig::start("pools").await;
    rig.queue("tap", &["ticket.#"]).await;
    rig.queue_of("own", "tap", &["ticket.#"]).await;
    rig.database
        .batch_execute(
            "insert into ticketflow.tenants (tenant_id, pool, state) values \
               ('paused', 'shared', 'paused'), ('own', 'own', 'active'); \
             select ticketflow.record_event(t, 'ticket', 'a', 'ticket.updated', ''::bytea) \
             from unnest('{default,paused,own}'::text[]) as t",
        )
        .await
        .expect("recorded");
    let relay = rig.relay(&["--pool", "shared"]);
    rig.until(
        "select count(*) from ticketflow.outbox_events where state = 'published'",
        1,
    )
    .await;
    rig.execute("update ticketflow.tenants set state = 'active'", &[])
        .await;
    rig.until(
        "select count(*) from ticketflow.outbox_events where state = 'published'",
        2,
    )
    .await;
    relay.stop().await;
    assert_eq!(rig.wire("ticketflow.own.tap").await.len(), 0);
    let relay = rig.relay(&["--pool", "own"]);
    rig.until_published(3).await;
    relay.stop().await;
    assert_eq!(rig.wire("ticketflow.own.tap").await.len(), 1);
    assert_eq!(rig.wire("ticketflow.shared.tap").await.len(), 2);
}

/// A relay that is killed leaves its lanes leased; another one has them when the lease is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_relay_is_replaced_when_its_lease_is_over() {
    let rig = Rig::start("replaced").await;
    rig.queue("tap", &["ticket.#"]).await;
    let relay: Running = rig.relay(&["--lease", "2s"]);
    rig.record(200, 5).await;
    rig.until_at_least(
        "select count(*) from ticketflow.outbox_events where state = 'published'",
        1,
    )
    .await;
    relay.kill();
    let other = rig.relay(&["--lease", "2s"]);
    let began = std::time::Instant::now();
    rig.until_published(1000).await;
    assert!(began.elapsed() < PATIENCE / 4, "{:?}", began.elapsed());
    other.stop().await;
    assert_first_arrivals_in_order(&rig.wire("ticketflow.shared.tap").await);
}
