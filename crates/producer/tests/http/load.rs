//! The load driver: its history must be true, also when links break under it.

use std::collections::HashSet;
use std::time::Duration;

use producer::{LOAD, LoadConfig};
use runtime::settings::{Invocation, Sources};
use sandbox::FaultProxy;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::running::{ACME, GLOBEX, Running};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_is_true_though_links_break() {
    let flags = ["--rate-per-second", "100000", "--rate-burst", "100000"];
    let producer = Running::start_with("load", &flags, None).await;
    let proxy = FaultProxy::start(producer.at.http.port()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("history.jsonl");
    let tenants = format!("acme={ACME},globex={GLOBEX}");
    let url = format!("http://127.0.0.1:{}", proxy.port());
    let arguments = [
        "--url",
        &url,
        "--tenants",
        &tenants,
        "--rate",
        "100",
        "--duration",
        "3s",
        "--think",
        "10ms",
        "--history",
        history.to_str().unwrap(),
    ];
    let Ok(Invocation::Run(settings)) = LOAD.read(&Sources::of(&arguments, &[])) else {
        panic!("settings");
    };
    let traffic = producer::load(
        LoadConfig::from_settings(&settings),
        CancellationToken::new(),
    );
    let traffic = tokio::spawn(traffic);
    while !traffic.is_finished() {
        tokio::time::sleep(Duration::from_millis(200)).await;
        proxy.cut_once();
    }
    let totals = traffic.await.unwrap().unwrap();
    assert!(
        totals.ok > 50 && totals.tries > totals.intents,
        "{totals:?}"
    );
    let text = std::fs::read_to_string(&history).unwrap();
    let entries: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(entries.len() as u64, totals.intents);
    let of = |outcome: &str, name: &str| -> HashSet<String> {
        let chosen = entries.iter().filter(|entry| entry["outcome"] == outcome);
        chosen
            .filter_map(|entry| Some(entry[name].as_str()?.to_owned()))
            .collect()
    };
    let column = async |sql: &str| -> HashSet<String> {
        let rows = producer.database.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    let recorded = column("select event_id::text from ticketflow.outbox_events").await;
    let kept = column("select idempotency_key from ticketflow.idempotency_keys").await;
    assert!(of("ok", "event_id").is_subset(&recorded));
    assert!(of("ok", "idempotency_key").is_subset(&kept));
    assert!(of("refused", "idempotency_key").is_disjoint(&kept));
    assert!(recorded.len() as u64 <= totals.ok + totals.unknown);
    assert_eq!(recorded.len(), kept.len());
}
