//! The same request again, under its key: one ticket, one event, one answer.

use std::collections::HashSet;

use reqwest::{Method, RequestBuilder};
use sandbox::FaultProxy;
use sandbox::{Direction, Then};
use serde_json::Value;

use crate::running::{ACME, GLOBEX, Running, problem};

const BODY: &str = r#"{"subject":"s","payload":{"n":1.0}}"#;

fn keyed(request: RequestBuilder, key: &str) -> RequestBuilder {
    request.header("idempotency-key", key)
}

#[tokio::test]
async fn the_same_request_gets_the_first_answer_again() {
    let producer = Running::start("again").await;
    let first = keyed(producer.post(BODY), "k").send().await.unwrap();
    let again = keyed(producer.post(BODY), "k").send().await.unwrap();
    for name in ["etag", "location", "content-type"] {
        assert_eq!(first.headers()[name], again.headers()[name]);
    }
    assert_eq!(
        (first.status(), again.status()),
        (201.try_into().unwrap(), 201.try_into().unwrap())
    );
    let text = first.text().await.unwrap();
    assert_eq!(again.text().await.unwrap(), text);
    let id = serde_json::from_str::<Value>(&text).unwrap()["ticket_id"].clone();
    let id = id.as_str().unwrap();
    let change = r#"{"status":"pending"}"#;
    let changed = keyed(producer.patch(id, "\"1\"", change), "k2")
        .send()
        .await
        .unwrap();
    let changed = changed.text().await.unwrap();
    // The version has moved on; the key is looked at first.
    producer
        .patch(id, "\"2\"", r#"{"status":"closed"}"#)
        .send()
        .await
        .unwrap();
    let again = keyed(producer.patch(id, "\"1\"", change), "k2")
        .send()
        .await
        .unwrap();
    assert_eq!(again.status(), 200);
    assert_eq!(again.headers()["etag"], "\"2\"");
    assert_eq!(again.text().await.unwrap(), changed);
    assert_eq!(producer.count("tickets").await, 1);
    assert_eq!(producer.count("outbox_events").await, 3);
}

#[tokio::test]
async fn another_request_under_the_key_is_refused_before_it_is_looked_at() {
    let producer = Running::start("reused").await;
    let first: Value = keyed(producer.post(BODY), "k")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let id = first["ticket_id"].as_str().unwrap();
    let others = [
        producer.post(r#"{"subject":"t"}"#),
        producer.post("not even JSON"),
        producer.patch(id, "\"1\"", r#"{"subject":"t"}"#),
        producer.patch(id, "\"9\"", r#"{"subject":"t"}"#),
        producer.patch(id, "1", r#"{"subject":"t"}"#),
        producer.patch("nowhere", "\"1\"", r#"{"subject":"t"}"#),
        producer
            .request(Method::PATCH, &format!("/v1/tickets/{id}"), ACME)
            .body("{}"),
    ];
    for other in others {
        let answer = keyed(other, "k").send().await.unwrap();
        problem(answer, 422, "idempotency-key-reused").await;
    }
    assert_eq!(producer.count("outbox_events").await, 1);
}

#[tokio::test]
async fn a_refused_request_leaves_its_key_free() {
    let producer = Running::start("free").await;
    let ticket = producer.ticket("s").await;
    let id = ticket["ticket_id"].as_str().unwrap();
    let stale = keyed(producer.patch(id, "\"7\"", r#"{"subject":"t"}"#), "k");
    problem(stale.send().await.unwrap(), 412, "stale-version").await;
    problem(
        keyed(producer.post("{}"), "k").send().await.unwrap(),
        422,
        "invalid",
    )
    .await;
    assert_eq!(producer.count("idempotency_keys").await, 0);
    assert_eq!(
        keyed(producer.post(BODY), "k")
            .send()
            .await
            .unwrap()
            .status(),
        201
    );
    for (key, header) in [
        ("", "Idempotency-Key"),
        (&"x".repeat(256)[..], "Idempotency-Key"),
    ] {
        let refused = problem(
            keyed(producer.post(BODY), key).send().await.unwrap(),
            400,
            "bad-request",
        );
        assert_eq!(refused.await["errors"][0]["header"], header);
    }
}

#[tokio::test]
async fn a_key_is_each_tenants_own() {
    let producer = Running::start("own_keys").await;
    let mut ids = HashSet::new();
    for key in [ACME, GLOBEX, ACME] {
        let request = producer
            .request(Method::POST, "/v1/tickets", key)
            .body(BODY);
        let answer = keyed(request, "same").send().await.unwrap();
        assert_eq!(answer.status(), 201);
        let ticket: Value = answer.json().await.unwrap();
        ids.insert(ticket["ticket_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 2);
}

#[tokio::test]
async fn many_at_once_under_one_key_make_one_ticket() {
    let producer = Running::start("at_once").await;
    let sent = (0..20).map(|_| keyed(producer.post(BODY), "k").send());
    let answers = futures_util::future::join_all(sent).await;
    let mut bodies = HashSet::new();
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 201);
        bodies.insert(answer.text().await.unwrap());
    }
    assert_eq!(bodies.len(), 1);
    assert_eq!(producer.count("tickets").await, 1);
    assert_eq!(producer.count("outbox_events").await, 1);
}

#[tokio::test]
async fn a_key_in_flight_is_waited_for_and_then_refused() {
    let producer =
        Running::start_with("in_flight", &["--database-lock-timeout", "200ms"], None).await;
    let take = "begin; insert into ticketflow.idempotency_keys \
        (tenant_id, idempotency_key, request_digest) values ('acme', 'k', sha256('x'))";
    producer.database.batch_execute(take).await.unwrap();
    let answer = keyed(producer.post(BODY), "k").send().await.unwrap();
    assert!(answer.headers().contains_key("retry-after"));
    problem(answer, 409, "in-flight").await;
    producer.database.batch_execute("rollback").await.unwrap();
    producer.nothing_written().await;
    assert_eq!(
        keyed(producer.post(BODY), "k")
            .send()
            .await
            .unwrap()
            .status(),
        201
    );
}

#[tokio::test]
async fn a_lost_commit_answer_ends_in_one_ticket_and_one_event() {
    let target = sandbox::shared().await.unwrap().postgres().port();
    let proxy = FaultProxy::start(target).await.unwrap();
    let producer = Running::start_with("lost", &[], Some(proxy.port())).await;
    let first = producer.ticket("prepares the statements").await;
    let id = first["ticket_id"].as_str().unwrap().to_owned();
    for (number, key) in [(1, None), (2, Some("k")), (3, None)] {
        // The call goes through and commits; its answer does not come back.
        let subject = format!("lost-{number}");
        let trap = proxy.trap(Direction::ToServer, subject.as_bytes(), 1, Then::DropAnswer);
        let request = producer.post(format!("{{\"subject\":\"{subject}\"}}"));
        let request = match key {
            Some(key) => keyed(request, key),
            None => request,
        };
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 201, "{subject}");
        assert!(trap.closed().await, "{subject}: the link was never cut");
        let ticket: Value = answer.json().await.unwrap();
        assert_eq!(
            (&ticket["subject"], &ticket["version"]),
            (&subject.into(), &1.into())
        );
    }
    let trap = proxy.trap(Direction::ToServer, b"lost-change", 1, Then::DropAnswer);
    let answer = producer
        .patch(&id, "\"1\"", r#"{"subject":"lost-change"}"#)
        .send()
        .await
        .unwrap();
    assert!(trap.closed().await);
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["etag"]),
        (200, &"\"2\"".parse().unwrap())
    );
    assert_eq!(producer.count("tickets").await, 4);
    assert_eq!(producer.count("outbox_events").await, 5);
}

#[tokio::test]
async fn a_commit_that_cannot_be_looked_up_is_said_to_be_unknown() {
    let target = sandbox::shared().await.unwrap().postgres().port();
    let proxy = FaultProxy::start(target).await.unwrap();
    let flags = [
        "--request-timeout",
        "1500ms",
        "--database-lock-timeout",
        "500ms",
    ];
    let producer = Running::start_with("unknown", &flags, Some(proxy.port())).await;
    producer.ticket("prepares the statements").await;
    let trap = proxy.trap(Direction::ToServer, b"lost-for-long", 1, Then::DropAnswer);
    let request = producer.post(r#"{"subject":"lost-for-long"}"#).send();
    let broken = async {
        assert!(trap.closed().await);
        proxy.cut();
    };
    let (answer, ()) = tokio::join!(request, broken);
    problem(answer.unwrap(), 500, "outcome-unknown").await;
    // Afterwards, with nothing sent, it is certain that nothing was written.
    let answer = producer.post(BODY).send().await.unwrap();
    assert!(answer.headers().contains_key("retry-after"));
    problem(answer, 503, "unavailable").await;
    proxy.restore();
    assert_eq!(producer.count("tickets").await, 2);
}
