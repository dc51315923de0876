//! k07 to k16 and k18: what the consumer promises, through real servers.

use uuid::Uuid;

use crate::consuming::{Stage, message, ticket_event};
use crate::scripted::{Do, Scripted, TABLE};

const RECEIPTS: &str = "select count(*) from ticketflow.effect_receipts";
const EFFECTS: &str = "select count(*) from effects";
const TASKS: &str = "select count(*) from ticketflow.business_tasks";
const DOCUMENTS: &str = "select count(*) from ticketflow.search_documents";
const ENTRIES: &str = "select count(*) from ticketflow.audit_entries";
const CONFLICTS: &str = "select count(*) from ticketflow.event_conflicts";
const ROWS: &str = "select count(*) from ticketflow.deferred_deliveries";
const QUICK: [&str; 4] = ["--backoff-first", "50ms", "--backoff-most", "200ms"];

#[tokio::test(flavor = "multi_thread")]
async fn k07_receipt_and_effect_are_one() {
    let stage = Stage::new("k07").await;
    stage.run(TABLE).await;
    let [before, after, cut] = [1, 2, 3].map(|_| ticket_event("acme", Uuid::now_v7(), 1));
    let effect = Scripted::new("search");
    effect.with_event(&before, Do::FailBefore);
    effect.with_event(&after, Do::FailAfter);
    effect.with_event(&cut, Do::Hang);
    let consumer = stage.consumer_of(effect.clone(), &[]).await;
    stage.publish([&before, &after]).await;
    stage.until(ROWS, 2).await;
    assert_eq!(stage.count(RECEIPTS).await, 0, "neither receipt");
    assert_eq!(stage.count(EFFECTS).await, 0, "nor effect");
    // Cut off between receipt and effect: what is open is rolled back.
    stage.publish([&cut]).await;
    effect.until_tried(&cut).await;
    consumer.kill().await;
    for event in [&before, &after, &cut] {
        effect.with_event(event, Do::Write);
    }
    // The next delivery applies it, and so do the rows.
    stage.publish([&before]).await;
    let consumer = stage.consumer_of(effect, &QUICK).await;
    stage.until(EFFECTS, 3).await;
    stage.until_held("search", 0).await;
    stage.until(ROWS, 0).await;
    assert_eq!(stage.count(RECEIPTS).await, 3);
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k08_missing_ticket_then_repaired() {
    let stage = Stage::new("k08").await;
    let ticket = Uuid::now_v7();
    stage.publish([&ticket_event("acme", ticket, 1)]).await;
    let consumer = stage.consumer(&QUICK).await;
    stage
        .until(
            "select count(*) from ticketflow.deferred_deliveries where attempts >= 2",
            1,
        )
        .await;
    let notified =
        "select count(*) from ticketflow.effect_receipts where effect_name = 'notification'";
    assert_eq!(
        stage.count(notified).await,
        0,
        "the receipt is rolled back with the effect"
    );
    let refused = "select count(*) from ticketflow.deferred_deliveries
                   where state = 'deferred' and reason = 'refused'
                     and detail like '%23503%business_tasks_ticket%'";
    assert_eq!(
        stage.count(refused).await,
        1,
        "and the row says what refused"
    );
    stage.ticket("acme", ticket).await;
    stage.until(TASKS, 1).await;
    stage.until(ROWS, 0).await;
    assert_eq!(stage.count(notified).await, 1);
    consumer.stop().await;
    assert_eq!(stage.count(TASKS).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn k09_only_the_receipt_key_means_duplicate() {
    let stage = Stage::new("k09").await;
    stage.run(TABLE).await;
    stage
        .run("create unique index effects_tenant on effects (tenant)")
        .await;
    let effect = Scripted::new("search");
    let [first, second, forged] = [1, 2, 3].map(|_| ticket_event("acme", Uuid::now_v7(), 1));
    // Whatever an error says, and even if it names the receipts' own key: it is the effect's.
    effect.with_event(
        &forged,
        Do::Run(
            "do $$ begin raise exception
               'doppelter Schlüsselwert verletzt Unique-Constraint »effect_receipts_pkey«'
               using errcode = 'unique_violation', table = 'effect_receipts',
                 constraint = 'effect_receipts_pkey'; end $$",
        ),
    );
    let consumer = stage
        .consumer_of(effect, &["--max-attempts", "2", "--backoff-first", "10ms"])
        .await;
    let counted = r#"consumer_parked_deliveries_total{effect="search",reason="attempts"}"#;
    let before = consumer.metric(counted).await;
    stage.publish([&first, &second, &forged]).await;
    let parked = "select count(*) from ticketflow.deferred_deliveries
                  where state = 'parked' and reason = 'attempts' and detail like '%23505 %'";
    stage.until(parked, 2).await;
    assert_eq!(
        stage.count(RECEIPTS).await,
        1,
        "none of them is taken for done"
    );
    assert_eq!(stage.count(EFFECTS).await, 1);
    let after = consumer.metric(counted).await;
    assert!(after >= before + 2.0, "it surfaces: {before}, {after}");
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k10_effects_of_one_event_are_independent() {
    let stage = Stage::new("k10").await;
    let ticket = Uuid::now_v7();
    stage.ticket("acme", ticket).await;
    stage
        .run("revoke insert on ticketflow.search_documents from ticketflow_consumer")
        .await;
    let consumer = stage.consumer(&QUICK).await;
    let event = ticket_event("acme", ticket, 1);
    stage.publish([&event]).await;
    stage.until(TASKS, 1).await;
    stage
        .until(
            "select count(*) from ticketflow.deferred_deliveries
                where effect_name = 'search' and attempts >= 2",
            1,
        )
        .await;
    assert_eq!(stage.count(DOCUMENTS).await, 0);
    stage
        .run("grant insert on ticketflow.search_documents to ticketflow_consumer")
        .await;
    stage.until(DOCUMENTS, 1).await;
    // A copy of the event: each effect has its own receipt by now.
    stage.publish([&event]).await;
    stage.until_empty().await;
    consumer.stop().await;
    assert_eq!(stage.count(RECEIPTS).await, 3);
    assert_eq!(stage.count(TASKS).await, 1, "what was done is not repeated");
}

#[tokio::test(flavor = "multi_thread")]
async fn k11_versions_of_one_ticket_are_not_swallowed() {
    let stage = Stage::new("k11").await;
    let ticket = Uuid::now_v7();
    stage.ticket("acme", ticket).await;
    let events: Vec<_> = (1..=5)
        .map(|version| ticket_event("acme", ticket, version))
        .collect();
    let consumer = stage.consumer(&[]).await;
    // Out of order, and the last one first.
    let found = "select count(*) from ticketflow.effect_receipts where effect_name = 'search'";
    for (done, place) in [4, 2, 0, 3, 1].into_iter().enumerate() {
        stage.publish([&events[place]]).await;
        stage.until(found, i64::try_from(done).unwrap() + 1).await;
    }
    stage.until(ENTRIES, 5).await;
    consumer.stop().await;
    assert_eq!(stage.count(TASKS).await, 5);
    let document = "select version from ticketflow.search_documents where subject = 'subject 5'";
    assert_eq!(stage.count(document).await, 5);
    let rows =
        "select version from ticketflow.audit_entries where not late and not gap order by entry_id";
    let trail = stage.database.query(rows, &[]).await.unwrap();
    let trail: Vec<i64> = trail.iter().map(|row| row.get(0)).collect();
    assert_eq!(trail, [1, 2, 3, 4, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn k12_twice_then_at_once() {
    let stage = Stage::new("k12").await;
    let ticket = Uuid::now_v7();
    stage.ticket("acme", ticket).await;
    let event = ticket_event("acme", ticket, 1);
    stage.publish([&event, &event]).await;
    let first = stage.consumer(&[]).await;
    stage.until(RECEIPTS, 3).await;
    stage.until_empty().await;
    first.stop().await;
    // Another one, to eight at once, each with one unacknowledged delivery at most.
    let ticket = Uuid::now_v7();
    stage.ticket("acme", ticket).await;
    let event = ticket_event("acme", ticket, 1);
    stage.publish(std::iter::repeat_n(&event, 64)).await;
    let alone = ["--prefetch-first", "1", "--prefetch-most", "1"];
    let mut consumers = Vec::new();
    for _ in 0..8 {
        consumers.push(stage.consumer(&alone).await);
    }
    stage.until_empty().await;
    for consumer in consumers {
        consumer.stop().await;
    }
    assert_eq!(stage.count(RECEIPTS).await, 6);
    assert_eq!(stage.count(TASKS).await, 2);
    assert_eq!(stage.count(ENTRIES).await, 2);
    assert_eq!(stage.count(ROWS).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn k13_redelivered_flag_decides_nothing() {
    let stage = Stage::new("k13").await;
    stage.run(TABLE).await;
    let event = ticket_event("acme", Uuid::now_v7(), 1);
    let effect = Scripted::new("search");
    effect.with_event(&event, Do::Hang);
    let consumer = stage.consumer_of(effect.clone(), &[]).await;
    stage.publish([&event]).await;
    // Taken, and never committed.
    effect.until_tried(&event).await;
    consumer.kill().await;
    assert_eq!(stage.count(EFFECTS).await, 0);
    effect.with_event(&event, Do::Write);
    let consumer = stage.consumer_of(effect.clone(), &[]).await;
    stage.until(EFFECTS, 1).await;
    stage.until_held("search", 0).await;
    assert!(effect.tried(&event) >= 2, "it was delivered again");
    consumer.stop().await;
    assert_eq!(stage.count(RECEIPTS).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn k14_same_identity_other_content_is_a_conflict() {
    let stage = Stage::new("k14").await;
    stage
        .run("alter table ticketflow.business_tasks drop constraint business_tasks_ticket")
        .await;
    let consumer = stage.consumer(&[]).await;
    let other = |event: &event::Event| {
        let mut other = event.clone();
        let text = String::from_utf8(event.payload.to_vec()).unwrap();
        other.payload = text.replace("subject 1", "another").into();
        other
    };
    // One after the other.
    let first = ticket_event("acme", Uuid::now_v7(), 1);
    stage.publish([&first]).await;
    stage.until(RECEIPTS, 3).await;
    let conflicts = r#"consumer_event_conflicts_total{effect="search"}"#;
    let before = consumer.metric(conflicts).await;
    stage.publish([&other(&first)]).await;
    let parked = "select count(*) from ticketflow.deferred_deliveries
                  where state = 'parked' and reason = 'conflict' and not applicable";
    stage.until(parked, 3).await;
    assert_eq!(
        stage
            .count("select count(distinct effect_name) from ticketflow.event_conflicts")
            .await,
        3
    );
    let after = consumer.metric(conflicts).await;
    assert!(after > before, "the metric moves: {before}, {after}");
    // Across effects: each has its first content, and the evidence is there.
    let second = ticket_event("acme", Uuid::now_v7(), 1);
    let before = stage.count(CONFLICTS).await;
    stage.send_to("search", [message(&second)]).await;
    stage.until(RECEIPTS, 4).await;
    stage
        .send_to("notification", [message(&other(&second))])
        .await;
    stage.until(RECEIPTS, 5).await;
    stage.until(CONFLICTS, before + 1).await;
    // At once, to two consumers.
    let rival = stage.consumer(&[]).await;
    for round in 1..=20 {
        let third = ticket_event("acme", Uuid::now_v7(), 1);
        let pair = [message(&third), message(&other(&third))];
        stage.send_to("search", pair).await;
        stage.until(parked, 3 + round).await;
    }
    stage.until_empty().await;
    assert_eq!(stage.count(RECEIPTS).await, 25, "one content of each pair");
    consumer.stop().await;
    rival.stop().await;
    let first_stands = format!(
        "select count(*) from ticketflow.search_documents
         where ticket_id = '{}' and subject = 'subject 1'",
        first.aggregate.aggregate_id
    );
    assert_eq!(stage.count(&first_stands).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn k15_identity_has_a_namespace() {
    let stage = Stage::new("k15").await;
    let ticket = Uuid::now_v7();
    stage.ticket("acme", ticket).await;
    stage.ticket("globex", ticket).await;
    let event = ticket_event("acme", ticket, 1);
    let id = event.identity.event_id;
    let mut foreign = ticket_event("globex", ticket, 1);
    foreign.identity.event_id = id;
    let mut elsewhere = event.clone();
    elsewhere.identity.source = event::Source::parse("billing").unwrap();
    // One tenant's message under another one's key can never suppress that one's effect.
    let mut forged = message(&event);
    forged.routing_key = message(&foreign).routing_key;
    let consumer = stage.consumer(&[]).await;
    stage.send_to("notification", [forged]).await;
    stage.until(ROWS, 1).await;
    stage.publish([&foreign, &event, &elsewhere]).await;
    stage
        .until(
            "select count(*) from ticketflow.effect_receipts where effect_name = 'notification'",
            3,
        )
        .await;
    stage.until_empty().await;
    consumer.stop().await;
    let of_tenants = "select count(distinct tenant_id) from ticketflow.business_tasks";
    assert_eq!(stage.count(of_tenants).await, 2);
    assert_eq!(stage.count(TASKS).await, 3);
    assert_eq!(stage.count(CONFLICTS).await, 0);
}

fn a_short_window_is_refused() {
    let short = runtime::settings::Sources::of(
        &["--dedup-window", "20days"],
        &[
            ("DATABASE_URL", "postgres://localhost/x"),
            ("AMQP_URL", "amqp://localhost"),
        ],
    );
    let problems = consumer::PROCESS.read(&short).unwrap_err().to_string();
    let told = problems.contains("does not outlive redelivery");
    assert!(told, "{problems}");
}

/// An event recorded so many hours ago.
fn made(hours: i64, number: u8) -> event::Event {
    let moment = chrono::Utc::now() - chrono::TimeDelta::hours(hours);
    let millis = u64::try_from(moment.timestamp_millis()).unwrap();
    let mut event = ticket_event("acme", Uuid::now_v7(), 1);
    event.identity.event_id =
        uuid::Builder::from_unix_timestamp_millis(millis, &[number; 10]).into_uuid();
    event
}

#[tokio::test(flavor = "multi_thread")]
async fn k16_window_outlives_redelivery() {
    a_short_window_is_refused();
    // What is below the floor is parked, not applied.
    let stage = Stage::new("k16").await;
    stage.run(TABLE).await;
    let effect = Scripted::new("search");
    let consumer = stage.consumer_of(effect.clone(), &[]).await;
    let old = made(24 * 36, 1);
    stage.publish([&old]).await;
    let below = "select count(*) from ticketflow.deferred_deliveries where reason = 'below_floor'";
    stage.until(below, 1).await;
    assert_eq!(stage.count(RECEIPTS).await + stage.count(EFFECTS).await, 0);
    // Retention racing with deliveries doubles nothing: copies of yesterday's events come while
    // everything before today is removed.
    let events: Vec<_> = (0..200).map(|number| made(36, number)).collect();
    let rival = stage.consumer_of(effect, &[]).await;
    let inbox = inbox::Inbox::new(
        runtime::database::Database::open(stage.config(&[]).database)
            .unwrap()
            .pool()
            .clone(),
        inbox::Policy::default(),
    );
    for (round, copies) in events.chunks(20).enumerate() {
        let twice = copies.iter().chain(copies);
        if round == 5 {
            stage.until(EFFECTS, 100).await;
            let window = std::time::Duration::from_secs(1);
            let (removed, ()) = tokio::join!(inbox.retain(window), stage.publish(twice));
            removed.unwrap();
        } else {
            stage.publish(twice).await;
        }
    }
    stage.until_held("search", 0).await;
    // A partition that was held in that moment has its turn in a later round.
    let again = || inbox.retain(std::time::Duration::from_secs(1));
    while again().await.unwrap().skipped > 0 {}
    stage.publish(&events).await;
    stage.until_held("search", 0).await;
    // Each was applied once or is kept to be looked at.
    let decided = "select count(*) from (
        select event_id from effects union select event_id from ticketflow.deferred_deliveries
        where reason = 'below_floor') decided";
    stage.until(decided, 201).await;
    consumer.stop().await;
    rival.stop().await;
    let doubled =
        "select count(*) from (select event_id from effects group by 1 having count(*) > 1) d";
    assert_eq!(stage.count(doubled).await, 0);
    assert!(
        stage.count(EFFECTS).await >= 100,
        "those before the floor rose were applied"
    );
    let gone = "select count(*) from ticketflow.effect_receipts
                where event_id < (select floor from ticketflow.receipt_floor)";
    assert_eq!(stage.count(gone).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn k18_through_real_servers() {
    let stage = Stage::new("k18").await;
    let ticket = Uuid::now_v7();
    stage.ticket("acme", ticket).await;
    let event = ticket_event("acme", ticket, 1);
    let consumer = stage.consumer(&[]).await;
    consumer.until_ready(true).await;
    let mut series = Vec::new();
    for effect in ["notification", "search", "audit"] {
        for outcome in ["applied", "duplicate"] {
            let one =
                format!("consumer_deliveries_total{{effect=\"{effect}\",outcome=\"{outcome}\"}}");
            series.push((consumer.metric(&one).await, one));
        }
    }
    stage.publish([&event, &event]).await;
    stage.until(RECEIPTS, 3).await;
    stage.until_empty().await;
    for (before, one) in series {
        let after = consumer.metric(&one).await;
        assert!(after > before, "{one}: {before}, {after}");
    }
    consumer.stop().await;
    assert_eq!(stage.count(RECEIPTS).await, 3);
    assert_eq!(stage.count(TASKS).await, 1);
    assert_eq!(stage.count(DOCUMENTS).await, 1);
    assert_eq!(stage.count(ENTRIES).await, 1);
    assert_eq!(
        stage
            .count("select count(*) from ticketflow.consumer_marks")
            .await,
        0
    );
}
