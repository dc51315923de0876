//! The admin port over real HTTP.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::net::SocketAddr;
use std::time::Duration;

use runtime::admin::{Admin, AdminError};
use runtime::measure::{self, Kind, Metric};
use runtime::readiness::Readiness;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    let read = tokio::time::timeout(Duration::from_secs(10), read).await;
    read.expect("an answer in time").unwrap();
    answer
}

fn free() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[tokio::test]
async fn readiness_follows_the_conditions_and_the_stop() {
    let readiness = Readiness::default();
    let stopping = CancellationToken::new();
    let broker = readiness.condition("broker");
    let admin = Admin::serve(free(), readiness, stopping.clone())
        .await
        .unwrap();
    let address = admin.address();
    assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
    broker.fails("blocked: memory");
    let answer = get(address, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(
        answer.contains("blocked: memory") && answer.contains("\"broker\""),
        "{answer}"
    );
    broker.holds();
    assert!(get(address, "/readyz").await.starts_with("HTTP/1.1 200"));
    stopping.cancel();
    let answer = get(address, "/readyz").await;
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("\"stopping\":true"),
        "{answer}"
    );
    assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn metrics_are_described_and_bucketed() {
    const METRICS: &[Metric] = &[
        Metric {
            name: "admin_test_wait_seconds",
            kind: Kind::Histogram,
            labels: &[],
            help: "How long.",
        },
        Metric {
            name: "admin_test_events_total",
            kind: Kind::Counter,
            labels: &[],
            help: "How many.",
        },
    ];
    let admin = Admin::serve(free(), Readiness::default(), CancellationToken::new());
    let admin = admin.await.unwrap();
    measure::describe(METRICS);
    metrics::histogram!("admin_test_wait_seconds").record(0.003);
    let text = get(admin.address(), "/metrics").await;
    for wanted in [
        "# HELP admin_test_events_total How many.",
        "admin_test_events_total 0",
        "# TYPE admin_test_wait_seconds histogram",
        "admin_test_wait_seconds_bucket{le=\"0.002\"} 0",
        "admin_test_wait_seconds_bucket{le=\"0.005\"} 1",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    assert!(
        measure::table(METRICS).contains("| `admin_test_events_total` | counter |  | How many. |")
    );
}

#[tokio::test]
async fn a_port_in_use_is_said_so() {
    let taken = tokio::net::TcpListener::bind(free()).await.unwrap();
    let address = taken.local_addr().unwrap();
    let refused = Admin::serve(address, Readiness::default(), CancellationToken::new()).await;
    let error = refused.expect_err("the port is taken");
    assert!(matches!(error, AdminError::InUse(other) if other == address));
    assert!(error.to_string().contains("--admin"), "{error}");
}
