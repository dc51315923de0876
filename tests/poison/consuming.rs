//! Hostile and poisonous messages: each ends as an effect, a row that is tried again, or a row
//! with a reason; never as a crash, never in silence; and its neighbours do not wait for it.

use std::time::Duration;

use broker::Route;
use event::{Event, Message};
use uuid::Uuid;

use crate::consuming::{Stage, message, ticket_event};
use crate::scripted::{Do, Scripted, TABLE};

const KINDS: usize = 20;

/// The `number`th hostile message, made from a good one.
fn hostile(good: &Event, number: usize) -> Message {
    let mut bad = message(good);
    let set = |bad: &mut Message, name: &str, value: &str| {
        bad.headers.retain(|(known, _)| known != name);
        bad.headers.push((name.to_owned(), value.to_owned()));
    };
    let drop_header =
        |bad: &mut Message, name: &str| bad.headers.retain(|(known, _)| known != name);
    match number % KINDS {
        0 => bad.body = "{\"".into(),
        1 => bad.body = format!("{{\"n\":{number}}}").into(),
        2 => bad.body = "[".repeat(100_000).into(),
        3 => bad.body = vec![0xff, 0xfe, 0x00].into(),
        4 => bad.body = String::new().into(),
        5 => drop_header(&mut bad, "cloudEvents:id"),
        6 => drop_header(&mut bad, "cloudEvents:tenantid"),
        7 => bad.headers.clear(),
        8 => set(&mut bad, "cloudEvents:tenantid", "globex"),
        9 => set(&mut bad, "cloudEvents:specversion", "9.9"),
        10 => set(&mut bad, "cloudEvents:aggregateversion", "1e3"),
        11 => set(&mut bad, "cloudEvents:aggregateprevious", "-1"),
        12 => set(
            &mut bad,
            "cloudEvents:id",
            "00000000-0000-0000-0000-000000000000",
        ),
        13 => set(&mut bad, "cloudEvents:time", "yesterday"),
        14 => set(&mut bad, "cloudEvents_tenantid", "globex"),
        15 => bad.message_id = Uuid::now_v7().to_string(),
        16 => bad.routing_key = bad.routing_key.replace("acme", "globex"),
        17 => set(&mut bad, "cloudEvents:subject", "a\0b"),
        18 => {
            let text = String::from_utf8(good.payload.to_vec()).unwrap();
            bad.body = text
                .replace("\"tenant_id\":\"acme\"", "\"tenant_id\":\"globex\"")
                .into();
        }
        _ => {
            let text = String::from_utf8(good.payload.to_vec()).unwrap();
            bad.body = text
                .replace("\"body\":\"body\"", "\"body\":\"a\\u0000b\"")
                .into();
        }
    }
    bad
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_hostile_messages_among_a_thousand_good_ones() {
    const GOOD: i64 = 1000;
    const BAD: i64 = 10_000;
    let stage = Stage::new("hostile").await;
    let mut messages = Vec::new();
    for _ in 0..GOOD {
        messages.push(message(&ticket_event("acme", Uuid::now_v7(), 1)));
    }
    for number in 0..usize::try_from(BAD).unwrap() {
        messages.push(hostile(&ticket_event("acme", Uuid::now_v7(), 1), number));
    }
    fastrand::shuffle(&mut messages);
    let consumer = stage.consumer(&["--effects", "search"]).await;
    let restarts = "ticketflow_task_restarts_total{task=\"subscription\"}";
    let before = consumer.metric(restarts).await;
    consumer.until_ready(true).await;
    stage.send_to("search", messages).await;
    stage
        .until("select count(*) from ticketflow.search_documents", GOOD)
        .await;
    stage
        .until(
            "select coalesce(sum(copies), 0)::bigint from ticketflow.deferred_deliveries",
            BAD,
        )
        .await;
    stage.until_empty().await;
    let unexplained = "select count(*) from ticketflow.deferred_deliveries
                       where state <> 'parked' or detail = '' or body is null";
    assert_eq!(stage.count(unexplained).await, 0);
    let foreign = "select count(*) from ticketflow.effect_receipts where tenant_id <> 'acme'";
    assert_eq!(
        stage.count(foreign).await,
        0,
        "no tenant speaks for another one"
    );
    let restarted = consumer.metric(restarts).await > before;
    assert!(!restarted, "nothing was started again");
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_mebibytes_are_applied_and_one_byte_more_is_parked() {
    let stage = Stage::new("large").await;
    let consumer = stage.consumer(&["--effects", "audit"]).await;
    let mut largest = ticket_event("acme", Uuid::now_v7(), 1);
    largest.payload = vec![b'x'; event::PAYLOAD_BYTES].into();
    let mut larger = message(&ticket_event("acme", Uuid::now_v7(), 1));
    larger.body = vec![b'x'; event::PAYLOAD_BYTES + 1].into();
    stage.send_to("audit", [message(&largest), larger]).await;
    stage
        .until("select count(*) from ticketflow.audit_entries", 1)
        .await;
    let kept = "select count(*) from ticketflow.deferred_deliveries
                where reason = 'unreadable' and octet_length(body) = 2097153";
    stage.until(kept, 1).await;
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neighbour_waits_for_nothing_that_refuses() {
    let stage = Stage::new("neighbours").await;
    stage.run(TABLE).await;
    let effect = Scripted::new("search");
    let events: Vec<_> = (0..50)
        .map(|_| ticket_event("acme", Uuid::now_v7(), 1))
        .collect();
    for refused in &events[..10] {
        effect.with_event(refused, Do::FailBefore);
    }
    let consumer = stage
        .consumer_of(effect, &["--max-attempts", "3", "--backoff-first", "10ms"])
        .await;
    stage.publish(&events).await;
    stage.until("select count(*) from effects", 40).await;
    let parked = "select count(*) from ticketflow.deferred_deliveries
                  where state = 'parked' and attempts = 3 and detail = 'told to fail'";
    stage.until(parked, 10).await;
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kills_comes_back_as_a_suspect_and_only_it_is_parked() {
    let stage = Stage::new("killer").await;
    stage.run(TABLE).await;
    let effect = Scripted::new("search");
    let killer = ticket_event("acme", Uuid::now_v7(), 1);
    let innocents: Vec<_> = (0..20)
        .map(|_| ticket_event("acme", Uuid::now_v7(), 1))
        .collect();
    effect.with_event(&killer, Do::Hang);
    stage.send_to("search", [message(&killer)]).await;
    stage.send_to("search", innocents.iter().map(message)).await;
    // The process dies with it, until the broker has had enough.
    let lease = ["--suspect-lease", "300ms"];
    while stage
        .count("select count(*) from ticketflow.deferred_deliveries")
        .await
        == 0
    {
        let tries = effect.tried(&killer);
        assert!(tries < 60, "the delivery limit is 20");
        let consumer = stage.consumer_of(effect.clone(), &lease).await;
        let kept = "select count(*) from ticketflow.deferred_deliveries";
        while effect.tried(&killer) == tries && stage.count(kept).await == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        consumer.kill().await;
    }
    effect.with_event(&killer, Do::Panic);
    let before = effect.tried(&killer);
    let consumer = stage.consumer_of(effect.clone(), &lease).await;
    let parked = "select count(*) from ticketflow.deferred_deliveries
                  where state = 'parked' and reason = 'kills' and kills = 2";
    stage.until(parked, 1).await;
    assert!(
        effect.tried(&killer) <= before + 2,
        "two tries are enough to know"
    );
    stage.until("select count(*) from effects", 20).await;
    stage.until_empty().await;
    consumer.stop().await;
    let receipts = "select count(*) from ticketflow.effect_receipts";
    assert_eq!(stage.count(receipts).await, 20, "the innocents are applied");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_of_nobody_is_kept() {
    let stage = Stage::new("nobodys").await;
    let consumer = stage.consumer(&[]).await;
    let event = ticket_event("acme", Uuid::now_v7(), 1);
    let lost = message(&event).readdressed("ticketflow.shared.dead");
    stage.send(Route::Queue, &[lost]).await;
    let kept = "select count(*) from ticketflow.deferred_deliveries
                where effect_name = 'unknown' and state = 'parked' and not applicable";
    stage.until(kept, 1).await;
    stage.until_empty().await;
    consumer.stop().await;
}
