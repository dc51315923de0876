//! The tap on a real broker, and the ledger's reading of real tables.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::time::Duration;

use broker::{Broker, ConnectOptions, Publish, PublishOutcome, Publishers, Route};
use event::{Event, Identity, Message, NewEvent, PoolName};
use sandbox::Site;
use sandbox::ledger::{self, Committed, LedgerReport, Tap, TapQueue};
use tokio::time::Instant;
use tokio_postgres::Client;
use uuid::Uuid;

async fn tapped() -> (Site, Tap, Broker) {
    let servers = sandbox::shared().await.unwrap();
    let site = servers.site("tap").await.unwrap();
    let queue = TapQueue {
        pool: PoolName::parse("shared").unwrap(),
        patterns: vec!["ticket.#".to_owned()],
    };
    let tap = Tap::start(&site.amqp_url, &[queue]).await.unwrap();
    let broker = Broker::start(ConnectOptions::new(site.amqp_url.clone(), "test")).unwrap();
    broker.connected(Duration::from_secs(30)).await.unwrap();
    (site, tap, broker)
}

/// Records through SQL, and reads the event back as the relay would.
async fn record(client: &Client, aggregate: &str) -> Event {
    let new = NewEvent::json("default", ("ticket", aggregate), "ticket.created", "{}").unwrap();
    let id = client
        .query_one(
            "select ticketflow.record_event('default', 'ticket', $1, 'ticket.created', '{}'::text)",
            &[&aggregate],
        )
        .await
        .unwrap()
        .get::<_, Uuid>(0);
    let row = client
        .query_one(
            "select version, previous_version, occurred_at from ticketflow.outbox_events \
             where event_id = $1",
            &[&id],
        )
        .await
        .unwrap();
    Event {
        identity: Identity {
            event_id: id,
            tenant_id: new.tenant_id,
            source: new.source,
        },
        aggregate: new.aggregate,
        version: row.get(0),
        previous_version: row.get(1),
        event_type: new.event_type,
        content_type: new.content_type,
        payload: new.payload,
        headers: new.headers,
        trace_context: new.trace_context,
        occurred_at: row.get(2),
    }
}

async fn publish(broker: &Broker, event: &Event) {
    let pool = PoolName::parse("shared").unwrap();
    let message = Message::of(event, &pool).unwrap();
    let publisher = broker.publisher().await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let wave = publisher
        .publish_wave(Route::Events, &[message], deadline)
        .await;
    assert_eq!(wave.outcomes, [PublishOutcome::Confirmed]);
}

async fn seen(tap: &Tap, messages: u64) {
    let mut seen = tap.seen();
    let enough = seen.wait_for(|seen| *seen >= messages);
    let waited = tokio::time::timeout(Duration::from_secs(30), enough).await;
    waited.expect("the tap sees it in time").unwrap();
}

async fn settle_and_apply(client: &Client, event: &Event) {
    let id = event.identity.event_id;
    for statement in [
        "update ticketflow.outbox_events set state = 'published', pool = 'shared', \
         published_at = clock_timestamp() where event_id = $1",
        "insert into ticketflow.effect_receipts (event_id, tenant_id, source, effect_name, digest) \
         select event_id, tenant_id, source, unnest('{notification,search,audit}'::text[]), \
           ticketflow.event_digest(event_id, tenant_id, source, aggregate_type, aggregate_id, \
             version, event_type, content_type, payload) \
         from ticketflow.outbox_events where event_id = $1",
        "insert into ticketflow.audit_entries (tenant_id, aggregate_type, aggregate_id, version, \
           event_id, source, event_type, digest, occurred_at) \
         select tenant_id, aggregate_type, aggregate_id, version, event_id, source, event_type, \
           ''::bytea, occurred_at \
         from ticketflow.outbox_events where event_id = $1",
    ] {
        client.execute(statement, &[&id]).await.unwrap();
    }
}

async fn add_task(client: &Client, event: &Event) {
    let ticket = Uuid::parse_str(event.aggregate.aggregate_id.as_str()).unwrap();
    let id = event.identity.event_id;
    client
        .execute(
            "insert into ticketflow.business_tasks \
               (task_id, tenant_id, ticket_id, event_id, source, task_type) \
             values (gen_random_uuid(), 'default', $1, $2, 'ticketflow', 'ticket.created')",
            &[&ticket, &id],
        )
        .await
        .unwrap();
}

async fn judged(site: &Site, tap: &Tap) -> LedgerReport {
    let client = site.database().await.unwrap();
    let committed = Committed::default();
    ledger::check(&client, &committed, &tap.wire())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_follows_an_event_through_real_tables_and_the_wire() {
    let (site, tap, broker) = tapped().await;
    let client = site.database().await.unwrap();
    let ticket = Uuid::new_v4();
    client
        .execute(
            "insert into ticketflow.tickets (tenant_id, ticket_id, version, subject) \
             values ('default', $1, 1, 'printer')",
            &[&ticket],
        )
        .await
        .unwrap();
    let event = record(&client, &ticket.to_string()).await;
    let report = judged(&site, &tap).await;
    assert_eq!(
        (report.committed, report.published, report.lost.len()),
        (1, 0, 1),
        "{report}"
    );

    let mut arrivals = tap.arrivals();
    publish(&broker, &event).await;
    assert_eq!(arrivals.recv().await.unwrap(), event.identity);
    publish(&broker, &event).await;
    seen(&tap, 2).await;
    settle_and_apply(&client, &event).await;
    let report = judged(&site, &tap).await;
    assert_eq!(report.duplicates_on_wire, 1);
    // Neither task nor search document.
    assert_eq!(report.lost.len(), 2, "{report}");

    add_task(&client, &event).await;
    client
        .execute(
            "insert into ticketflow.search_documents \
               (tenant_id, ticket_id, version, subject, body, status, priority, updated_at) \
             select tenant_id, ticket_id, version, subject, body, status, priority, updated_at \
             from ticketflow.tickets",
            &[],
        )
        .await
        .unwrap();
    let report = judged(&site, &tap).await;
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.effects.values().sum::<u64>(), 3);

    add_task(&client, &event).await;
    assert_eq!(judged(&site, &tap).await.doubled.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tap_goes_on_after_its_connection_was_closed() {
    let (site, tap, broker) = tapped().await;
    let client = site.database().await.unwrap();
    let (one, two) = (record(&client, "one").await, record(&client, "two").await);
    publish(&broker, &one).await;
    seen(&tap, 1).await;
    site.close_connections().await.unwrap();
    let broker = Broker::start(ConnectOptions::new(site.amqp_url.clone(), "test")).unwrap();
    broker.connected(Duration::from_secs(30)).await.unwrap();
    publish(&broker, &two).await;
    let mut seen = tap.seen();
    let both = seen.wait_for(|_| tap.events() == 2);
    let waited = tokio::time::timeout(Duration::from_secs(30), both).await;
    waited.expect("the tap sees it in time").unwrap();
    assert_eq!(tap.wire().duplicates(), 0);
}
