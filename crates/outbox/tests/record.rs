//! Recording, on a real database: what becomes of an event, and what is refused.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::sync::Arc;

use event::NewEvent;
use futures_util::future::join_all;
use outbox::{RecordError, record, record_all};
use sandbox::Site;
use tokio_postgres::{Client, Error};
use uuid::Uuid;

async fn site(name: &str) -> (Site, Client) {
    let sandbox = sandbox::shared().await.expect("the sandbox starts");
    let site = sandbox.site(name).await.expect("a site");
    let client = site.database().await.expect("its database");
    let tenants = "insert into ticketflow.tenants (tenant_id) values ('acme'), ('globex')";
    client.batch_execute(tenants).await.expect("tenants");
    (site, client)
}

fn invoice(id: &str, payload: &str) -> NewEvent {
    let payload = payload.to_owned();
    NewEvent::json("acme", ("invoice", id), "invoice.paid", payload).expect("an event")
}

async fn count(client: &Client) -> i64 {
    let sql = "select count(*) from ticketflow.outbox_events";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// What a statement is refused with: SQLSTATE, message, hint, constraint.
fn refused(error: &Error) -> (String, String, String, Option<String>) {
    let server = error.as_db_error().expect("of the server");
    (
        server.code().code().to_owned(),
        server.message().to_owned(),
        server.hint().unwrap_or_default().to_owned(),
        server.constraint().map(str::to_owned),
    )
}

#[tokio::test]
async fn an_event_shares_the_fate_of_its_transaction() {
    let (_site, mut client) = site("fate").await;
    let transaction = client.transaction().await.unwrap();
    record(&transaction, &invoice("1", "{}")).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!(count(&client).await, 0);
    let transaction = client.transaction().await.unwrap();
    let mut event = invoice("1", r#"{"path":"C:\\temp"}"#);
    event.headers.insert("region".to_owned(), "eu".to_owned());
    let id = record(&transaction, &event).await.unwrap();
    let next = record(&transaction, &event).await.unwrap();
    transaction.commit().await.unwrap();
    assert_ne!(id, next, "without an id of its own it is another event");
    let row = client
        .query_one(
            "select version, previous_version, payload, headers->>'region', state, held, \
               lane = ticketflow.lane_of(tenant_id, aggregate_type, aggregate_id) \
             from ticketflow.outbox_events where event_id = $1",
            &[&next],
        )
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (2, 1));
    assert_eq!(row.get::<_, &[u8]>(2), event.payload.as_ref());
    assert_eq!(
        (row.get::<_, &str>(3), row.get::<_, &str>(4)),
        ("eu", "pending")
    );
    assert_eq!(
        (row.get::<_, bool>(5), row.get::<_, bool>(6)),
        (false, true)
    );
}

#[tokio::test]
async fn an_id_names_one_event_for_ever() {
    let (_site, mut client) = site("identity").await;
    let mut event = invoice("1", "{}");
    event.event_id = Some(Uuid::now_v7());
    for _ in 0..2 {
        let transaction = client.transaction().await.unwrap();
        assert_eq!(
            Some(record(&transaction, &event).await.unwrap()),
            event.event_id
        );
        transaction.commit().await.unwrap();
    }
    assert_eq!(count(&client).await, 1);
    let others: [fn(&mut NewEvent); 4] = [
        |event| event.payload = "{ }".into(),
        |event| event.event_type = "invoice.sent".parse().unwrap(),
        |event| event.aggregate.aggregate_id = "2".parse().unwrap(),
        |event| event.version = Some(2),
    ];
    for change in others {
        let mut other = event.clone();
        change(&mut other);
        let transaction = client.transaction().await.unwrap();
        let error = record(&transaction, &other).await.unwrap_err();
        assert!(matches!(error, RecordError::Identity(_)), "{error:?}");
    }
    // Another tenant, or another source, is another namespace.
    let mut elsewhere = event.clone();
    elsewhere.source = "billing".parse().unwrap();
    let mut elsewhere_too = event.clone();
    elsewhere_too.tenant_id = "globex".parse().unwrap();
    let transaction = client.transaction().await.unwrap();
    record_all(&transaction, &[elsewhere, elsewhere_too, event])
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(count(&client).await, 3);
    let versions = "select string_agg(version::text, ',' order by tenant_id, version) \
        from ticketflow.outbox_events";
    assert_eq!(
        client
            .query_one(versions, &[])
            .await
            .unwrap()
            .get::<_, &str>(0),
        "1,2,1"
    );
}

/// A tenant, and the rest of the arguments, as SQL.
const REFUSED: &[(&str, &str)] = &[
    ("''", "'a','b','c.d','{}'"),
    ("'a.b'", "'a','b','c.d','{}'"),
    ("'#'", "'a','b','c.d','{}'"),
    ("'A'", "'a','b','c.d','{}'"),
    ("repeat('a',64)", "'a','b','c.d','{}'"),
    ("E'a\\nb'", "'a','b','c.d','{}'"),
    ("'..'", "'a','b','c.d','{}'"),
    ("null", "'a','b','c.d','{}'"),
    ("'acme'", "'A','b','c.d','{}'"),
    ("'acme'", "'a','','c.d','{}'"),
    ("'acme'", "'a',E'b\\t','c.d','{}'"),
    ("'acme'", "'a',repeat('x',256),'c.d','{}'"),
    ("'acme'", "'a',repeat('é',128),'c.d','{}'"),
    ("'acme'", "'a','b','c..d','{}'"),
    ("'acme'", "'a','b',repeat('c',101),'{}'"),
    ("'acme'", "'a','b','c.d',null::text"),
    ("'acme'", "'a','b','c.d',repeat('x',2097153)"),
    ("'acme'", "'a','b','c.d','{}',content_type=>repeat('x',256)"),
    ("'acme'", "'a','b','c.d','{}',source=>''"),
    ("'acme'", "'a','b','c.d','{}',headers=>'[]'"),
    ("'acme'", "'a','b','c.d','{}',headers=>'{\"a\":1}'"),
    (
        "'acme'",
        "'a','b','c.d','{}',headers=>jsonb_build_object('a',repeat('x',4097))",
    ),
    (
        "'acme'",
        "'a','b','c.d','{}',headers=>jsonb_build_object(repeat('x',254),'a')",
    ),
    (
        "'acme'",
        "'a','b','c.d','{}',headers=>(select jsonb_object_agg(n::text,repeat('x',4000)) \
             from generate_series(1,5) as n)",
    ),
    (
        "'acme'",
        "'a','b','c.d','{}',trace_context=>'{\"x\":\"y\"}'",
    ),
    ("'acme'", "'a','b','c.d','{}',version=>0"),
    ("'acme'", "'a','b','c.d','{}',event_id=>gen_random_uuid()"),
    (
        "'acme'",
        "'a','b','c.d','{}',event_id=>'019ad7b2-7c1d-7e3a-9f00-0000000000dd'",
    ),
    (
        "'acme'",
        "'a','b','c.d','{}',version=>1,available_at=>clock_timestamp()",
    ),
    (
        "'acme'",
        "'a','b','c.d','{}',available_at=>clock_timestamp() + interval '8 days'",
    ),
];

#[tokio::test]
async fn what_the_broker_or_the_relay_would_choke_on_is_refused_with_the_rule() {
    let (_site, client) = site("refused").await;
    for (tenant, rest) in REFUSED {
        let sql = format!("select ticketflow.record_event({tenant},{rest})");
        let error = client.batch_execute(&sql).await.expect_err(&sql);
        let (code, message, hint, _) = refused(&error);
        assert_eq!(code, "22023", "{sql}: {message}");
        assert!(hint.ends_with('.') && hint.len() > 10, "{sql}: {hint}");
    }
    let unknown = "select ticketflow.record_event('nobody','a','b','c.d','{}'::text)";
    let (code, _, hint, constraint) = refused(&client.batch_execute(unknown).await.unwrap_err());
    assert_eq!(
        (code.as_str(), constraint.as_deref()),
        ("23503", Some("outbox_events_tenant"))
    );
    assert!(hint.contains("tenant add"), "{hint}");
    assert_eq!(count(&client).await, 0);
    let counters = "select count(*) from ticketflow.outbox_aggregates";
    assert_eq!(
        client
            .query_one(counters, &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        0
    );
}

#[tokio::test]
async fn many_writers_of_one_aggregate_leave_no_gap_and_positions_in_order() {
    let (site, client) = site("writers").await;
    let writers = (0..20).map(|_| async {
        let mut own = site.database().await.unwrap();
        for _ in 0..10 {
            let transaction = own.transaction().await.unwrap();
            record(&transaction, &invoice("one", "{}")).await.unwrap();
            transaction.commit().await.unwrap();
        }
    });
    join_all(writers).await;
    let row = client
        .query_one(
            "select count(*), \
               bool_and(version = number and previous_version = number - 1) \
             from (select version, previous_version, row_number() over (order by position) as number \
                   from ticketflow.outbox_events) as ordered",
            &[],
        )
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, bool>(1)), (200, true));
}

#[tokio::test]
async fn arrays_are_recorded_in_their_order_and_never_in_a_deadlock() {
    let (site, mut client) = site("arrays").await;
    let events: Vec<NewEvent> = ["b", "a", "b", "c"].map(|id| invoice(id, "{}")).to_vec();
    let transaction = client.transaction().await.unwrap();
    let ids = record_all(&transaction, &events).await.unwrap();
    assert!(record_all(&transaction, &[]).await.unwrap().is_empty());
    transaction.commit().await.unwrap();
    let rows = client
        .query(
            "select event_id, aggregate_id, version from ticketflow.outbox_events order by position",
            &[],
        )
        .await
        .unwrap();
    let stored: Vec<(Uuid, &str, i64)> = rows
        .iter()
        .map(|r| (r.get(0), r.get(1), r.get(2)))
        .collect();
    let wanted = [
        (ids[0], "b", 1),
        (ids[1], "a", 1),
        (ids[2], "b", 2),
        (ids[3], "c", 1),
    ];
    assert_eq!(stored, wanted);
    let site = Arc::new(site);
    let crowd = (0..8).map(|seed| {
        let site = Arc::clone(&site);
        tokio::spawn(async move {
            let mut own = site.database().await.unwrap();
            let mut order: Vec<String> = (0..12).map(|number| number.to_string()).collect();
            order.rotate_left(seed);
            if seed % 2 == 1 {
                order.reverse();
            }
            let events: Vec<NewEvent> = order.iter().map(|id| invoice(id, "{}")).collect();
            for _ in 0..10 {
                let transaction = own.transaction().await.unwrap();
                record_all(&transaction, &events).await.unwrap();
                transaction.commit().await.unwrap();
            }
        })
    });
    for done in join_all(crowd).await {
        done.unwrap();
    }
    assert_eq!(count(&client).await, 4 + 8 * 10 * 12);
    let uneven = "select ticketflow.record_events('{acme}','{a,b}','{1}','{x}','{y}')";
    let (code, ..) = refused(&client.batch_execute(uneven).await.unwrap_err());
    assert_eq!(code, "2202E");
}

#[tokio::test]
async fn a_delayed_event_is_outside_the_order() {
    let (_site, mut client) = site("delayed").await;
    let mut event = invoice("1", "{}");
    event.available_at = Some(chrono::Utc::now() + chrono::Duration::hours(1));
    event.event_id = Some(Uuid::now_v7());
    let transaction = client.transaction().await.unwrap();
    record(&transaction, &event).await.unwrap();
    record(&transaction, &event).await.unwrap();
    let prompt = record(&transaction, &invoice("1", "{}")).await.unwrap();
    transaction.commit().await.unwrap();
    let rows = client
        .query(
            "select event_id, version, held, available_at is not null \
             from ticketflow.outbox_events order by position",
            &[],
        )
        .await
        .unwrap();
    let stored: Vec<(Uuid, Option<i64>, bool, bool)> = rows
        .iter()
        .map(|r| (r.get(0), r.get(1), r.get(2), r.get(3)))
        .collect();
    let delayed = (event.event_id.unwrap(), None, true, true);
    assert_eq!(stored, [delayed, (prompt, Some(1), false, false)]);
}

#[tokio::test]
async fn versions_and_counters_are_64_bits_wide() {
    let (_site, mut client) = site("wide").await;
    let mut event = invoice("1", "{}");
    event.version = Some(i64::from(i32::MAX) + 5);
    let transaction = client.transaction().await.unwrap();
    record(&transaction, &event).await.unwrap();
    record(&transaction, &invoice("1", "{}")).await.unwrap();
    transaction.commit().await.unwrap();
    let last = "select max(version) from ticketflow.outbox_events";
    assert_eq!(
        client.query_one(last, &[]).await.unwrap().get::<_, i64>(0),
        2_147_483_653
    );
}

#[tokio::test]
async fn text_keeps_its_backslashes_and_commits_are_durable() {
    let (_site, client) = site("text").await;
    let sql = r#"set synchronous_commit = off; begin;
        select ticketflow.record_event('acme','invoice','1','invoice.paid','{"path":"C:\\temp"}'::text)"#;
    client.batch_execute(sql).await.unwrap();
    let within = client
        .query_one("show synchronous_commit", &[])
        .await
        .unwrap();
    assert_eq!(within.get::<_, &str>(0), "on");
    client.batch_execute("commit").await.unwrap();
    let payload = "select convert_from(payload, 'UTF8') from ticketflow.outbox_events";
    let row = client.query_one(payload, &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), r#"{"path":"C:\\temp"}"#);
}

#[tokio::test]
async fn a_recorder_may_record_and_nothing_else() {
    let (_site, client) = site("recorder").await;
    client
        .batch_execute("set role ticketflow_recorder")
        .await
        .unwrap();
    let mine = "select ticketflow.record_event('acme','invoice','1','invoice.paid','{}'::text)";
    client.batch_execute(mine).await.unwrap();
    for table in [
        "outbox_events",
        "outbox_aggregates",
        "tenants",
        "tickets",
        "tenant_keys",
    ] {
        let error = client
            .batch_execute(&format!("select from ticketflow.{table}"))
            .await;
        assert_eq!(refused(&error.unwrap_err()).0, "42501", "{table}");
    }
    for call in [
        "lock_aggregate('acme','a','b')",
        "tenant_of_key('x')",
        "enter('acme','x')",
    ] {
        let error = client
            .batch_execute(&format!("select ticketflow.{call}"))
            .await;
        assert_eq!(refused(&error.unwrap_err()).0, "42501", "{call}");
    }
    let session = "set ticketflow.tenant = 'globex'";
    client.batch_execute(session).await.unwrap();
    let (code, _, hint, _) = refused(&client.batch_execute(mine).await.unwrap_err());
    assert_eq!(code, "42501");
    assert!(hint.contains("another tenant"), "{hint}");
}

#[tokio::test]
async fn what_was_recorded_does_not_change() {
    let (_site, client) = site("immutable").await;
    let sql = "select ticketflow.record_event('acme','invoice','1','invoice.paid','{}'::text)";
    client.batch_execute(sql).await.unwrap();
    for column in [
        "payload = 'x'",
        "event_type = 'y'",
        "version = 9",
        "tenant_id = 'globex'",
    ] {
        let change = format!("update ticketflow.outbox_events set {column}");
        let (code, ..) = refused(&client.batch_execute(&change).await.unwrap_err());
        assert_eq!(code, "23001", "{column}");
    }
    client
        .batch_execute("update ticketflow.outbox_events set attempts = 1")
        .await
        .unwrap();
}
