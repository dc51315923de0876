//! What a new queue gets: all that it missed, and nothing else.

use std::time::Duration;

use broker::Look;
use event::Delivered;
use topology::TopologyError;

use crate::support::{NOTIFICATION, SEARCH, Stage, eventually, shared};

const RECEIPT: &str = "insert into ticketflow.effect_receipts (event_id, tenant_id, source, effect_name, digest) \
     select event_id, tenant_id, source, 'search', sha256('') from ticketflow.outbox_events where position % 5 = 0";

const DEFERRED: &str = "insert into ticketflow.deferred_deliveries (state, effect_name, pool, tenant_id, source, event_id, digest, \
       reason, applicable, next_attempt_at, routing_key, properties, body) \
     select 'deferred', 'search', 'shared', tenant_id, source, event_id, sha256(''), 'test', true, clock_timestamp(), '', '{}', '' \
     from ticketflow.outbox_events where position % 5 = 1";

#[tokio::test(flavor = "multi_thread")]
async fn a_new_queue_gets_exactly_what_it_missed_in_order_under_the_same_ids() {
    let stage = Stage::set("missed").await;
    stage.verified().await;
    stage.published("ticket.created", 600).await;
    stage.published("invoice.created", 20).await;
    stage.execute(RECEIPT).await;
    stage.execute(DEFERRED).await;
    stage
        .execute("update ticketflow.outbox_events set pool = 'other' where position % 50 = 2")
        .await;
    let fresh = "select ticketflow.record_event('default', 'ticket', 'pending', 'ticket.created', '{}'::text)";
    stage.sql.query(fresh, &[]).await.expect("a pending event");
    let expected = stage
        .ids("state = 'published' and pool = 'shared' and event_type = 'ticket.created' and position % 5 > 1")
        .await;
    assert!(expected.len() > 300, "{}", expected.len());

    stage.broker.delete_queue(SEARCH).await.expect("deleted");
    stage.verified().await;
    assert_eq!(
        stage.waiting(NOTIFICATION).await,
        0,
        "the other queue gets nothing"
    );
    let mut ids = Vec::new();
    stage
        .take(SEARCH, expected.len(), |received| {
            let delivered: &Delivered = &received.delivered;
            let event = delivered.read().expect("an event");
            assert_eq!(event.payload, "{\"a\": 1.10}");
            let lane = event.lane().number();
            let key = format!("shared.{lane:02}.default.ticket.created");
            assert_eq!(delivered.original_routing_key(), key);
            ids.push(event.identity.event_id.to_string());
        })
        .await;
    assert_eq!(ids, expected);
    assert_eq!(stage.waiting(SEARCH).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_below_the_floor_is_not_sent_again() {
    let stage = Stage::set("floor").await;
    stage.verified().await;
    stage.published("ticket.created", 10).await;
    let middle = stage.ids("true").await[4].clone();
    stage
        .execute(&format!(
            "update ticketflow.receipt_floor set floor = '{middle}'"
        ))
        .await;
    stage.broker.delete_queue(SEARCH).await.expect("deleted");
    stage.verified().await;
    let expected = stage.ids(&format!("event_id >= '{middle}'")).await;
    assert_eq!(stage.take_ids(SEARCH, expected.len()).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_full_stops_the_refill_and_another_try_goes_on_from_there() {
    let stage = Stage::set("full").await;
    stage.verified().await;
    stage.published("ticket.created", 600).await;
    let vhost = stage.site.name.as_str();
    let full = [
        "set_policy",
        "-p",
        vhost,
        "full",
        ".*search",
        r#"{"max-length":300}"#,
    ];
    stage
        .site
        .sandbox()
        .rabbitmqctl(&full)
        .await
        .expect("a policy");
    stage.broker.delete_queue(SEARCH).await.expect("deleted");
    for _ in 0..4 {
        let error = stage.topology.verify(&shared()).await.expect_err("full");
        assert!(matches!(error, TopologyError::Refill { .. }), "{error}");
        let stands = stage.generations("search").await;
        assert_eq!(
            (stands.generation, stands.declared, stands.ready),
            (3, 3, 2)
        );
    }
    let clear = ["clear_policy", "-p", vhost, "full"];
    stage
        .site
        .sandbox()
        .rabbitmqctl(&clear)
        .await
        .expect("no policy");
    eventually("it comes up", async || {
        stage.topology.verify(&shared()).await.is_ok()
    })
    .await;
    assert_eq!(stage.generations("search").await.ready, 3);
    // A wave that was nacked in part is sent again from its first nack on: few copies.
    let waiting = stage.waiting(SEARCH).await;
    assert!((600..900).contains(&waiting), "{waiting}");
    let mut ids = stage
        .take_ids(SEARCH, usize::try_from(waiting).unwrap())
        .await;
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 600);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refill_that_was_overtaken_does_not_count() {
    let stage = Stage::set("overtaken").await;
    stage.verified().await;
    stage.published("ticket.created", 2_000).await;
    stage.broker.delete_queue(SEARCH).await.expect("deleted");
    let overtaking = async {
        // Some of it has arrived: the refill is on its way.
        eventually("the queue fills", async || {
            matches!(
                stage.broker.look_at(SEARCH).await,
                Ok(Look::Present { messages: 1.., .. })
            )
        })
        .await;
        stage.broker.delete_queue(SEARCH).await.expect("deleted");
        stage.execute("update ticketflow.effect_queues set generation = generation + 1, generation_at = clock_timestamp() where effect = 'search'").await;
    };
    let pool = shared();
    let (look, ()) = tokio::join!(stage.topology.verify(&pool), overtaking);
    assert!(
        !matches!(look, Ok(topology::Standing::Verified)),
        "{look:?}"
    );
    let stands = stage.generations("search").await;
    assert!(stands.ready < stands.generation, "{stands:?}");
    stage.execute("update ticketflow.effect_queues set generation_at = clock_timestamp() - interval '16 s' where effect = 'search'").await;
    stage.verified().await;
    assert_eq!(
        stage.waiting(SEARCH).await,
        2_000,
        "all of it, from the start"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_binding_lost_unseen_is_found_in_an_empty_queue() {
    let stage = Stage::set("lost").await;
    stage.verified().await;
    stage.published("ticket.created", 30).await;
    let age = Duration::from_secs(1);
    let search = async || {
        stage
            .topology
            .refill_lost(&shared(), age)
            .await
            .expect("searched")
    };
    assert_eq!(
        search().await,
        0,
        "no receipts here at all: they may be elsewhere"
    );
    stage.execute(RECEIPT).await;
    let old =
        "update ticketflow.effect_queues set generation_at = clock_timestamp() - interval '1 h'";
    stage.execute(old).await;
    assert_eq!(search().await, 0, "what was just published is on its way");
    stage
        .execute(
            "update ticketflow.outbox_events set published_at = published_at - interval '1 min'",
        )
        .await;
    stage.execute(old).await;
    assert_eq!(search().await, 24, "six have a receipt");
    stage.execute(old).await;
    assert_eq!(search().await, 0, "the queue is not empty");
    assert_eq!(stage.waiting(SEARCH).await, 24);
    assert_eq!(
        stage.generations("search").await.ready,
        2,
        "that is no new generation"
    );
}

/// As a program with too many rights might leave it: past every check.
const SPOIL: &str = "do $$ declare name text; begin \
    for name in select conname from pg_constraint \
      where conrelid = 'ticketflow.outbox_events'::regclass and contype = 'c' \
    loop execute format('alter table ticketflow.outbox_events drop constraint %I', name); end loop; \
  end $$; \
  alter table ticketflow.outbox_events disable trigger outbox_events_immutable; \
  update ticketflow.outbox_events set headers = '[]' where aggregate_id = '7'";

#[tokio::test(flavor = "multi_thread")]
async fn a_spoiled_row_keeps_no_other_event_from_a_new_queue() {
    let stage = Stage::set("spoiled").await;
    stage.verified().await;
    stage.published("ticket.created", 20).await;
    stage.sql.batch_execute(SPOIL).await.expect("spoiled");
    stage.broker.delete_queue(SEARCH).await.expect("deleted");
    stage.verified().await;
    assert_eq!(stage.waiting(SEARCH).await, 19);
}
