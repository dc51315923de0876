//! Too much, too slow, too large, or no database: the right status in bounded time.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use sandbox::FaultProxy;

use crate::raw::Raw;
use crate::running::{GLOBEX, Running, problem};

const BODY: &str = r#"{"subject":"s"}"#;

#[tokio::test]
async fn a_tenant_over_its_rate_is_told_when_to_come_back_and_others_are_not_harmed() {
    let flags = [
        "--rate-per-second",
        "1",
        "--rate-burst",
        "3",
        "--key-cache",
        "100ms",
    ];
    let producer = Running::start_with("rate", &flags, None).await;
    let answers = join_all((0..10).map(|_| producer.post(BODY).send())).await;
    let mut refused = 0;
    for answer in answers {
        let answer = answer.unwrap();
        if answer.status() == 429 {
            refused += 1;
            assert_eq!(answer.headers()["retry-after"], "1");
            problem(answer, 429, "too-many-requests").await;
        } else {
            assert_eq!(answer.status(), 201);
        }
    }
    assert!((1..=7).contains(&refused), "{refused}");
    assert_eq!(producer.count("tickets").await, 10 - refused);
    let other = producer
        .request(Method::POST, "/v1/tickets", GLOBEX)
        .body(BODY);
    assert_eq!(other.send().await.unwrap().status(), 201);
    producer
        .database
        .batch_execute("update ticketflow.tenants set rate_per_second = 1000, rate_burst = 1000")
        .await
        .unwrap();
    // Its own rate holds once it is looked up again.
    let since = Instant::now();
    loop {
        let answers = join_all((0..10).map(|_| producer.post(BODY).send())).await;
        if answers
            .into_iter()
            .all(|answer| answer.unwrap().status() == 201)
        {
            break;
        }
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "its own rate does not hold"
        );
    }
}

#[tokio::test]
async fn a_full_house_refuses_at_once_and_leaves_room_for_other_tenants() {
    let flags = [
        "--max-in-flight-per-tenant",
        "2",
        "--database-pool-size",
        "4",
    ];
    let producer = Running::start_with("full", &flags, None).await;
    producer.ticket("s").await;
    producer
        .database
        .batch_execute("begin; lock table ticketflow.tickets")
        .await
        .unwrap();
    let stuck = [producer.post(BODY).send(), producer.post(BODY).send()].map(tokio::spawn);
    producer.waiting_for_locks(2).await;
    let refused = producer.post(BODY).send().await.unwrap();
    assert!(refused.headers().contains_key("retry-after"));
    let refused = problem(refused, 503, "unavailable").await;
    assert_eq!(refused["detail"], "too many requests are under way");
    let other = producer.request(Method::GET, "/v1/tickets", GLOBEX).send();
    let other = tokio::spawn(other);
    producer.database.batch_execute("rollback").await.unwrap();
    assert_eq!(other.await.unwrap().unwrap().status(), 200);
    for stuck in stuck {
        assert_eq!(stuck.await.unwrap().unwrap().status(), 201);
    }
}

#[tokio::test]
async fn an_exhausted_pool_and_a_silent_database_end_in_503_with_nothing_written() {
    let target = sandbox::shared().await.unwrap().postgres().port();
    let proxy = FaultProxy::start(target).await.unwrap();
    let flags = [
        "--database-pool-size",
        "1",
        "--request-timeout",
        "4s",
        "--database-lock-timeout",
        "300ms",
        "--database-wait-timeout",
        "500ms",
        "--no-hint",
    ];
    let producer = Running::start_with("silent", &flags, Some(proxy.port())).await;
    producer.ticket("s").await;
    producer
        .database
        .batch_execute("begin; lock table ticketflow.tickets")
        .await
        .unwrap();
    let since = Instant::now();
    let answers = join_all((0..4).map(|_| producer.post(BODY).send())).await;
    assert!(
        since.elapsed() < Duration::from_secs(10),
        "{:?}",
        since.elapsed()
    );
    for answer in answers {
        problem(answer.unwrap(), 503, "unavailable").await;
    }
    producer.database.batch_execute("rollback").await.unwrap();
    assert_eq!(producer.count("tickets").await, 1);
    proxy.cut();
    let answer = producer.post(BODY).send().await.unwrap();
    assert!(answer.headers().contains_key("retry-after"));
    problem(answer, 503, "unavailable").await;
    let ready = || async {
        producer
            .client
            .get(format!("http://{}/readyz", producer.at.admin))
            .send()
            .await
            .unwrap()
            .status()
    };
    let since = Instant::now();
    while ready().await != 503 {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "it says it is ready"
        );
    }
    proxy.restore();
    let since = Instant::now();
    while producer.post(BODY).send().await.unwrap().status() != 201 || ready().await != 200 {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "it does not come back"
        );
    }
}

#[tokio::test]
async fn slow_clients_are_given_up() {
    let flags = ["--body-timeout", "300ms", "--header-timeout", "300ms"];
    let producer = Running::start_with("slow", &flags, None).await;
    let mut slow_body = Raw::connect(&producer).await;
    slow_body
        .head("POST /v1/tickets", "content-length: 15\r\n")
        .await;
    slow_body.send(b"{\"subj").await;
    let answer = slow_body.answer().await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(
        answer.contains("urn:ticketflow:problem:slow-request"),
        "{answer}"
    );
    let mut slow_head = Raw::connect(&producer).await;
    slow_head
        .send(b"POST /v1/tickets HTTP/1.1\r\nhost: x\r\nx-")
        .await;
    // Closed, with or without a word.
    let answer = slow_head.answer().await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
        "{answer}"
    );
    let mut cut_off = Raw::connect(&producer).await;
    cut_off
        .head("POST /v1/tickets", "content-length: 15\r\n")
        .await;
    drop(cut_off);
    assert_eq!(producer.post(BODY).send().await.unwrap().status(), 201);
    assert_eq!(producer.count("tickets").await, 1);
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_their_turn() {
    let producer = Running::start_with("connections", &["--max-connections", "1"], None).await;
    let idle = Raw::connect(&producer).await;
    let waiting = tokio::spawn(producer.get("/v1/tickets").send());
    let mut holder = idle;
    holder
        .head("GET /v1/tickets", "connection: close\r\n")
        .await;
    assert!(holder.answer().await.starts_with("HTTP/1.1 200 "));
    drop(holder);
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn a_stop_lets_requests_under_way_finish() {
    let mut producer = Running::start("stop").await;
    producer.ticket("s").await;
    producer
        .database
        .batch_execute("begin; lock table ticketflow.tickets")
        .await
        .unwrap();
    let under_way = tokio::spawn(producer.post(BODY).send());
    producer.waiting_for_locks(1).await;
    producer.shutdown.cancel();
    let refused = Instant::now();
    while tokio::net::TcpStream::connect(producer.at.http)
        .await
        .is_ok()
    {
        assert!(
            refused.elapsed() < Duration::from_secs(30),
            "it still accepts"
        );
    }
    producer.database.batch_execute("commit").await.unwrap();
    assert_eq!(under_way.await.unwrap().unwrap().status(), 201);
    let ended = producer.task.take().unwrap().await.unwrap();
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(producer.count("tickets").await, 2);
}
