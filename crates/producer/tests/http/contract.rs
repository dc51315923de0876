//! The calls and their answers.

use reqwest::Method;
use serde_json::Value;

use crate::raw::Raw;
use crate::running::{ACME, GLOBEX, Running, problem};

/// What is sent in `contract/sample.json`.
const SAMPLE: &str = r#"{"subject":"Printer on fire","body":"Third floor.","priority":"high","payload":{"z":1.10,"big":12345678901234567890123,"path":"C:\\temp","a":[1e2]}}"#;

#[tokio::test]
async fn a_ticket_and_its_event_are_as_in_the_sample() {
    let producer = Running::start("sample").await;
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = producer
        .post(SAMPLE)
        .header("idempotency-key", "order-7731")
        .header("traceparent", traceparent)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 201);
    assert_eq!(answer.headers()["etag"], "\"1\"");
    let location = answer.headers()["location"].to_str().unwrap().to_owned();
    let text = answer.text().await.unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    let (id, event_id) = (&written["ticket_id"], &written["event_id"]);
    let (created, updated) = (&written["created_at"], &written["updated_at"]);
    assert_eq!(location, format!("/v1/tickets/{}", id.as_str().unwrap()));
    let ticket = format!(
        r#"{{"tenant_id":"acme","ticket_id":{id},"version":1,"subject":"Printer on fire","body":"Third floor.","status":"open","priority":"high","assignee":null,"created_at":{created},"updated_at":{updated}"#
    );
    assert_eq!(text, format!("{ticket},\"event_id\":{event_id}}}"));
    let row = producer
        .database
        .query_one(
            "select convert_from(payload, 'UTF8'), version, previous_version, event_type, \
               aggregate_type, aggregate_id, trace_context->>'traceparent', source, event_id::text, \
               content_type, lane = ticketflow.lane_of(tenant_id, aggregate_type, aggregate_id) \
             from ticketflow.outbox_events",
            &[],
        )
        .await
        .unwrap();
    let payload = r#"{"z":1.10,"big":12345678901234567890123,"path":"C:\\temp","a":[1e2]}"#;
    let body =
        format!(r#"{{"event_type":"ticket.created","ticket":{ticket}}},"payload":{payload}}}"#);
    assert_eq!(row.get::<_, String>(0), body);
    assert_eq!((row.get::<_, i64>(1), row.get::<_, i64>(2)), (1, 0));
    let texts: Vec<String> = (3..10).map(|column| row.get(column)).collect();
    let wanted = [
        "ticket.created",
        "ticket",
        id.as_str().unwrap(),
        traceparent,
        "ticketflow",
        event_id.as_str().unwrap(),
        "application/json",
    ];
    assert_eq!(texts, wanted);
    assert!(row.get::<_, bool>(10));
    let read = producer.get(&location).send().await.unwrap();
    assert_eq!(read.headers()["etag"], "\"1\"");
    assert_eq!(read.text().await.unwrap(), format!("{ticket}}}"));
}

#[tokio::test]
async fn each_change_has_one_version_and_one_event_by_what_changed() {
    let producer = Running::start("changes").await;
    let ticket = producer.ticket("s").await;
    let id = ticket["ticket_id"].as_str().unwrap();
    let changes = [
        (r#"{"subject":"t","body":null}"#, "ticket.updated"),
        (r#"{"assignee":"ann"}"#, "ticket.assigned"),
        (
            r#"{"status":"pending","assignee":"bob"}"#,
            "ticket.assigned",
        ),
        (
            r#"{"status":"resolved","assignee":"ann"}"#,
            "ticket.resolved",
        ),
        (r#"{"status":"closed"}"#, "ticket.updated"),
        (r#"{"status":"open","assignee":null}"#, "ticket.reopened"),
        (
            r#"{"priority":"urgent","payload":[ 1 , 2.0 ]}"#,
            "ticket.updated",
        ),
        (r#"{"status":"open"}"#, "ticket.updated"),
    ];
    for (version, (body, _)) in (1..).zip(changes) {
        let answer = producer
            .patch(id, &format!("\"{version}\""), body)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200, "{body}");
        assert_eq!(
            answer.headers()["etag"],
            format!("\"{}\"", version + 1),
            "{body}"
        );
        let written: Value = answer.json().await.unwrap();
        assert_eq!(written["version"], version + 1);
    }
    let rows = producer
        .database
        .query(
            "select event_type, version, previous_version, convert_from(payload, 'UTF8') \
             from ticketflow.outbox_events order by position",
            &[],
        )
        .await
        .unwrap();
    let types: Vec<&str> = rows.iter().skip(1).map(|row| row.get(0)).collect();
    assert_eq!(types, changes.map(|(_, event_type)| event_type));
    for (version, row) in (1_i64..).zip(&rows) {
        assert_eq!((row.get(1), row.get(2)), (version, version - 1));
    }
    assert!(
        rows[7]
            .get::<_, &str>(3)
            .ends_with(r#","payload":[ 1 , 2.0 ]}"#)
    );
    assert!(rows[8].get::<_, &str>(3).ends_with(r#","payload":null}"#));
    let last: Value = producer
        .get(&format!("/v1/tickets/{id}"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!((&last["subject"], &last["body"]), (&"t".into(), &"".into()));
    assert_eq!(
        (&last["status"], &last["assignee"]),
        (&"open".into(), &Value::Null)
    );
}

#[tokio::test]
async fn a_change_needs_the_present_version() {
    let producer = Running::start("conditions").await;
    let ticket = producer.ticket("s").await;
    let id = ticket["ticket_id"].as_str().unwrap();
    let body = r#"{"subject":"t"}"#;
    let without = producer
        .request(Method::PATCH, &format!("/v1/tickets/{id}"), ACME)
        .body(body);
    let refused = problem(without.send().await.unwrap(), 428, "precondition-required").await;
    assert_eq!(refused["errors"][0]["header"], "If-Match");
    for etag in ["\"2\"", "W/\"1\"", "\"x\""] {
        let answer = producer.patch(id, etag, body).send().await.unwrap();
        problem(answer, 412, "stale-version").await;
    }
    let answer = producer.patch(id, "1", body).send().await.unwrap();
    problem(answer, 400, "bad-request").await;
    assert_eq!(producer.count("outbox_events").await, 1);
    for etag in ["\"9\", \"1\"", "*"] {
        let answer = producer.patch(id, etag, body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{etag}");
    }
    assert_eq!(producer.count("outbox_events").await, 3);
}

#[tokio::test]
async fn what_is_not_there_and_what_is_anothers_look_the_same() {
    let producer = Running::start("missing").await;
    let ticket = producer.ticket("secret").await;
    let id = ticket["ticket_id"].as_str().unwrap();
    let nobodys = uuid::Uuid::now_v7().to_string();
    let mut answers = Vec::new();
    for id in [id, &nobodys] {
        for method in [Method::GET, Method::PATCH] {
            let answer = producer
                .request(method, &format!("/v1/tickets/{id}"), GLOBEX)
                .header("if-match", "\"1\"")
                .header("x-request-id", "same")
                .body(r#"{"subject":"t"}"#)
                .send()
                .await
                .unwrap();
            answers.push(problem(answer, 404, "not-found").await);
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    for id in [
        "x",
        "..",
        "%00",
        &id.to_uppercase().replace('-', ""),
        &format!("{{{id}}}"),
    ] {
        let answer = producer
            .get(&format!("/v1/tickets/{id}"))
            .send()
            .await
            .unwrap();
        assert!(answer.status() == 404, "{id}: {}", answer.status());
    }
    let list = producer
        .request(Method::GET, "/v1/tickets", GLOBEX)
        .send()
        .await
        .unwrap();
    assert_eq!(list.text().await.unwrap(), r#"{"tickets":[],"next":null}"#);
    assert_eq!(
        producer.count("outbox_aggregates").await,
        1,
        "no counter for what is not there"
    );
}

#[tokio::test]
async fn pages_hold_every_ticket_once() {
    let producer = Running::start("pages").await;
    let mut made = Vec::new();
    for number in 0..7 {
        made.push(producer.ticket(&number.to_string()).await["ticket_id"].clone());
    }
    made.reverse();
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page: Value = producer
            .get(&format!("/v1/tickets?limit=3{after}"))
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        found.extend(
            page["tickets"]
                .as_array()
                .unwrap()
                .iter()
                .map(|t| t["ticket_id"].clone()),
        );
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(found, made);
    let first = made[6].as_str().unwrap();
    producer
        .patch(first, "\"1\"", r#"{"status":"pending"}"#)
        .send()
        .await
        .unwrap();
    let pending: Value = producer
        .get("/v1/tickets?status=pending")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(pending["tickets"][0]["ticket_id"], first);
    assert_eq!(pending["tickets"].as_array().unwrap().len(), 1);
    for query in ["status=x", "limit=0", "after=x", "q=%00", "order=up"] {
        let answer = producer
            .get(&format!("/v1/tickets?{query}"))
            .send()
            .await
            .unwrap();
        let refused = problem(answer, 422, "invalid").await;
        let name = query.split('=').next().unwrap();
        assert_eq!(refused["errors"][0]["parameter"], name);
    }
}

#[tokio::test]
async fn search_finds_the_tenants_own_words() {
    let producer = Running::start("search").await;
    let ticket = producer.ticket("Printer on fire").await;
    let copy = "insert into ticketflow.search_documents \
        (tenant_id, ticket_id, version, subject, body, status, priority, updated_at) \
        select tenant_id, ticket_id, version, subject, body, status, priority, updated_at \
        from ticketflow.tickets";
    producer.database.execute(copy, &[]).await.unwrap();
    for (query, key, found) in [
        ("q=printer", ACME, true),
        ("q=fire+-water", ACME, true),
        ("q=printer&status=open", ACME, true),
        ("q=printer&status=closed", ACME, false),
        ("q=flood", ACME, false),
        ("q=printer", GLOBEX, false),
    ] {
        let path = format!("/v1/tickets?{query}");
        let page: Value = producer
            .request(Method::GET, &path, key)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let ids: Vec<&Value> = page["tickets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| &t["ticket_id"])
            .collect();
        assert_eq!(ids == [&ticket["ticket_id"]], found, "{query}: {page}");
    }
}

#[tokio::test]
async fn only_a_live_key_opens() {
    let producer = Running::start("keys").await;
    let get = |key: &str| producer.request(Method::GET, "/v1/tickets", key).send();
    assert_eq!(get(ACME).await.unwrap().status(), 200);
    for key in ["", "wrong", "acme"] {
        let answer = get(key).await.unwrap();
        assert_eq!(answer.headers()["www-authenticate"], "Bearer");
        problem(answer, 401, "unauthorized").await;
    }
    // A second live key, for rotation; then the first one is revoked, and refused at once although
    // it was just used.
    producer
        .database
        .batch_execute(
            "insert into ticketflow.tenant_keys (tenant_id, key_hash) values ('acme', sha256('next'));
             insert into ticketflow.tenant_keys (tenant_id, key_hash, expires_at)
               values ('acme', sha256('old'), clock_timestamp() - interval '1 second');
             update ticketflow.tenant_keys set revoked_at = clock_timestamp()
               where key_hash = sha256('acme-key')",
        )
        .await
        .unwrap();
    assert_eq!(get("next").await.unwrap().status(), 200);
    problem(get(ACME).await.unwrap(), 401, "unauthorized").await;
    problem(get("old").await.unwrap(), 401, "unauthorized").await;
    let write = producer.post(r#"{"subject":"s"}"#).send().await.unwrap();
    problem(write, 401, "unauthorized").await;
    producer.nothing_written().await;
}

/// Bodies, the status each gets, and the path that is named.
fn unkeepable() -> Vec<(String, u16, String)> {
    let deep = format!(
        "{{\"subject\":\"s\",\"payload\":{}1{}}}",
        "[".repeat(70),
        "]".repeat(70)
    );
    let long = format!("{{\"subject\":\"{}\"}}", "x".repeat(256));
    let too_deep = format!("/payload{}", "/0".repeat(63));
    [
        (
            r#"{"subject":"s","payload":{"a":"x\u0000y"}}"#,
            422,
            "/payload/a",
        ),
        (
            r#"{"subject":"s","payload":[{"x\u0000":1}]}"#,
            422,
            "/payload/0",
        ),
        (
            r#"{"subject":"s","payload":{"a":"\ud800"}}"#,
            422,
            "/payload/a",
        ),
        (
            r#"{"subject":"s","payload":{"a":1,"a":2}}"#,
            422,
            "/payload/a",
        ),
        (r#"{"subject":"a","subject":"b"}"#, 422, "/subject"),
        (r#"{"subject":"\u0000"}"#, 422, "/subject"),
        (&deep, 422, &too_deep),
        (&long, 422, "/subject"),
        (r#"{"subject":""}"#, 422, "/subject"),
        (r#"{}"#, 422, "/subject"),
        (r#"[]"#, 422, ""),
        (r#"{"subject":"s","priority":"x"}"#, 422, "/priority"),
        (r#"{"subject":"s","tenant_id":"globex"}"#, 422, "/tenant_id"),
        (r#"{"subject":"s""#, 400, ""),
    ]
    .map(|(body, status, pointer)| (body.to_owned(), status, pointer.to_owned()))
    .to_vec()
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_with_its_path_and_nothing_written() {
    let producer = Running::start("refused").await;
    for (body, status, pointer) in unkeepable() {
        let answer = producer.post(body.clone()).send().await.unwrap();
        let kind = if status == 400 {
            "bad-request"
        } else {
            "invalid"
        };
        let refused = problem(answer, status, kind).await;
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{body}");
    }
    let bytes = &b"{\"subject\":\"\xff\"}"[..];
    problem(
        producer.post(bytes).send().await.unwrap(),
        400,
        "bad-request",
    )
    .await;
    producer.nothing_written().await;
}

#[tokio::test]
async fn every_other_payload_is_kept_as_its_bytes() {
    let producer = Running::start("payloads").await;
    for payload in [
        r#"{"a":"\\u0000"}"#,
        r#"{"a":"\ud83d\ude00"}"#,
        "1e400",
        "-0.0",
        r#"" x ""#,
    ] {
        let body = format!("{{\"subject\":\"s\",\"payload\": {payload} }}");
        let answer = producer.post(body).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{payload}");
        let row = producer
            .database
            .query_one(
                "select convert_from(payload, 'UTF8') from ticketflow.outbox_events \
                 order by position desc limit 1",
                &[],
            )
            .await
            .unwrap();
        let body: String = row.get(0);
        assert!(
            body.ends_with(&format!(",\"payload\":{payload}}}")),
            "{body}"
        );
    }
}

#[tokio::test]
async fn only_plain_json_of_bounded_size_is_taken() {
    let producer = Running::start("media").await;
    let good = r#"{"subject":"s"}"#;
    for coding in ["gzip", "br", "identity, gzip"] {
        let answer = producer
            .post(good)
            .header("content-encoding", coding)
            .send()
            .await
            .unwrap();
        problem(answer, 415, "unsupported-media-type").await;
    }
    let form = producer
        .request(Method::POST, "/v1/tickets", ACME)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(good);
    problem(form.send().await.unwrap(), 415, "unsupported-media-type").await;
    let large = format!(
        "{{\"subject\":\"s\",\"payload\":\"{}\"}}",
        "x".repeat(1 << 20)
    );
    problem(
        producer.post(large.clone()).send().await.unwrap(),
        413,
        "too-large",
    )
    .await;
    let mut connection = Raw::connect(&producer).await;
    connection
        .head("POST /v1/tickets", "transfer-encoding: chunked\r\n")
        .await;
    for part in large.as_bytes().chunks(1 << 16) {
        connection
            .send(format!("{:x}\r\n", part.len()).as_bytes())
            .await;
        connection.send(part).await;
        connection.send(b"\r\n").await;
    }
    connection.send(b"0\r\n\r\n").await;
    let answer = connection.answer().await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    producer.nothing_written().await;
    let most = (1 << 20) - r#"{"subject":"s","payload":""}"#.len();
    let full = format!("{{\"subject\":\"s\",\"payload\":\"{}\"}}", "x".repeat(most));
    assert_eq!(producer.post(full).send().await.unwrap().status(), 201);
}

#[tokio::test]
async fn what_is_not_served_is_a_problem_too() {
    let producer = Running::start("routes").await;
    problem(producer.get("/v2").send().await.unwrap(), 404, "not-found").await;
    let delete = producer
        .request(Method::DELETE, "/v1/tickets", ACME)
        .send()
        .await
        .unwrap();
    assert!(delete.headers()["allow"].to_str().unwrap().contains("POST"));
    problem(delete, 405, "method-not-allowed").await;
    let answer = producer
        .get("/v1/tickets")
        .header("x-request-id", "mine-1")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.headers()["x-request-id"], "mine-1");
    let document: Value = producer
        .get("/openapi.json")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert!(
        document["openapi"].as_str().unwrap().starts_with("3.1"),
        "{document}"
    );
    for (path, method) in [
        ("/v1/tickets", "post"),
        ("/v1/tickets", "get"),
        ("/v1/tickets/{id}", "get"),
        ("/v1/tickets/{id}", "patch"),
    ] {
        assert!(
            document["paths"][path][method].is_object(),
            "{method} {path}"
        );
    }
}
