//! What the producer tells of itself: metrics as documented, logs without what is nobody's business.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use producer::METRICS;
use reqwest::Client;

use crate::running::{ACME, Running, problem};

#[tokio::test]
async fn the_metrics_are_those_of_the_table() {
    let producer = Running::start("metrics").await;
    let ticket = producer.ticket("s").await;
    let id = ticket["ticket_id"].as_str().unwrap();
    producer
        .patch(id, "\"1\"", r#"{"subject":"t"}"#)
        .send()
        .await
        .unwrap();
    for _ in 0..2 {
        let keyed = producer
            .post(r#"{"subject":"s"}"#)
            .header("idempotency-key", "k");
        assert_eq!(keyed.send().await.unwrap().status(), 201);
    }
    problem(producer.post("{}").send().await.unwrap(), 422, "invalid").await;
    let url = format!("http://{}/metrics", producer.at.admin);
    let text = producer
        .client
        .get(url)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let types = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE producer_"));
    let shown: BTreeSet<String> = types
        .map(|line| {
            let name = line.split(' ').next().unwrap();
            format!("producer_{name}")
        })
        .collect();
    let table: BTreeSet<String> = METRICS
        .iter()
        .map(|metric| metric.name.to_owned())
        .collect();
    assert_eq!(shown, table);
    for metric in METRICS {
        let labelled = text
            .lines()
            .filter(|line| line.starts_with(&format!("{}{{", metric.name)));
        for line in labelled {
            let labels = line.split(['{', '}']).nth(1).unwrap();
            let names: BTreeSet<&str> = labels
                .split(',')
                .filter_map(|label| label.split('=').next())
                .collect();
            let allowed: BTreeSet<&str> = metric.labels.iter().copied().chain(["le"]).collect();
            assert!(names.is_subset(&allowed), "{line}");
        }
    }
    assert!(
        text.contains("producer_requests_total{route=\"/v1/tickets/{id}\""),
        "{text}"
    );
}

#[tokio::test]
async fn a_log_says_what_happened_and_nothing_that_was_sent() {
    let producer = Running::start("log").await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap().to_string();
    drop(free);
    let child = Command::new(env!("CARGO_BIN_EXE_producer"))
        .args([
            "--listen",
            &listen,
            "--admin",
            "127.0.0.1:0",
            "--log",
            "debug",
            "--log-format",
            "json",
        ])
        .env("DATABASE_URL", &producer.site.database_url)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let url = format!("http://{listen}/v1/tickets?q=secret-query");
    let send = || {
        let body = r#"{"subject":"secret-subject","payload":"secret-payload"}"#;
        let request = Client::new()
            .post(&url)
            .bearer_auth(ACME)
            .header("x-request-id", "told-1");
        request
            .header("idempotency-key", "secret-idempotency")
            .body(body)
            .send()
    };
    let since = std::time::Instant::now();
    while !send().await.is_ok_and(|answer| answer.status() == 201) {
        assert!(since.elapsed().as_secs() < 60, "it does not serve");
    }
    let terminated = Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    assert!(terminated.success());
    let output = child.wait_with_output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    for told in [
        "\"request.id\":\"told-1\"",
        "\"status\":201",
        "\"tenant\":\"acme\"",
        "\"path\":\"/v1/tickets\"",
    ] {
        assert!(log.contains(told), "{told}: {log}");
    }
    for secret in ["secret", ACME] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}
