//! The import: any file, again and again, without a second ticket.

use std::fmt::Write as _;

use producer::{IMPORT, ImportConfig, Imported};
use runtime::settings::{Invocation, Sources};
use sandbox::{Direction, FaultProxy, Then};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::running::Running;

fn config(url: &str, file: &std::path::Path, more: &[&str]) -> ImportConfig {
    let mut arguments = vec!["--file", file.to_str().unwrap(), "--tenant", "acme"];
    arguments.extend(more);
    let Ok(Invocation::Run(settings)) =
        IMPORT.read(&Sources::of(&arguments, &[("DATABASE_URL", url)]))
    else {
        panic!("settings");
    };
    ImportConfig::from_settings(&settings).unwrap()
}

/// A file of so many tickets, with two bad lines at its start.
fn file(folder: &std::path::Path, tickets: u32) -> std::path::PathBuf {
    let mut text = String::from("{\"subject\":\"\"}\nnot JSON\n\n");
    for number in 0..tickets {
        writeln!(
            text,
            "{{\"subject\":\"n {number}\",\"payload\": {{\"n\":{number}.0}} }}"
        )
        .unwrap();
    }
    // The same line twice is two tickets: they have other numbers.
    text.push_str("{\"subject\":\"n 0\"}\n{\"subject\":\"n 0\"}");
    let path = folder.join("tickets.jsonl");
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn a_file_may_be_imported_again_after_whatever_happened() {
    let producer = Running::start("import").await;
    let target = producer.site.sandbox().postgres().port();
    let proxy = FaultProxy::start(target).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = file(folder.path(), 60);
    let url = producer.site.database_url_through(proxy.port());
    let config = config(&url, &file, &["--batch", "10"]);
    // Stopped in between, and one answer to COMMIT lost.
    let trap = proxy.trap(Direction::ToServer, b"n 25", 1, Then::DropAnswer);
    let stop = CancellationToken::new();
    let first = tokio::spawn(producer::import(config.clone(), stop.clone()));
    assert!(trap.closed().await);
    stop.cancel();
    let first = first.await.unwrap().unwrap();
    assert!(first.stopped && first.created < 62, "{first:?}");
    let second = producer::import(config.clone(), CancellationToken::new())
        .await
        .unwrap();
    let third = producer::import(config, CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        (second.lines, second.rejected, second.stopped),
        (64, 2, false)
    );
    let nothing_new = Imported {
        lines: 64,
        created: 0,
        known: 62,
        rejected: 2,
        stopped: false,
    };
    assert_eq!(third, nothing_new);
    assert_eq!(producer.count("tickets").await, 62);
    assert_eq!(producer.count("outbox_events").await, 62);
    let rejected = std::fs::read_to_string(folder.path().join("tickets.jsonl.bad")).unwrap();
    let rejected: Vec<Value> = rejected
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&rejected[0]["line"], &rejected[1]["line"]),
        (&1.into(), &2.into())
    );
    assert_eq!(
        rejected[0]["reason"],
        "/subject: must have 1 to 255 characters"
    );
    let spliced = "select count(*) from ticketflow.outbox_events \
        where convert_from(payload, 'UTF8') like '%,\"payload\":{\"n\":%.0}}'";
    assert_eq!(
        producer
            .database
            .query_one(spliced, &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        60
    );
}

#[tokio::test]
async fn two_imports_of_one_file_at_once_make_each_ticket_once() {
    let producer = Running::start("imports").await;
    let folder = tempfile::tempdir().unwrap();
    let file = file(folder.path(), 40);
    let import = |rejected: &str| {
        let rejected = folder.path().join(rejected);
        let config = config(
            &producer.site.database_url,
            &file,
            &["--batch", "7", "--rejected", rejected.to_str().unwrap()],
        );
        producer::import(config, CancellationToken::new())
    };
    let (one, other) = tokio::join!(import("a"), import("b"));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!((one.lines, other.lines), (44, 44));
    assert_eq!(producer.count("tickets").await, 42);
    assert_eq!(producer.count("outbox_events").await, 42);
}

#[tokio::test]
async fn an_unknown_tenant_imports_nothing() {
    let producer = Running::start("import_nobody").await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&producer.site.database_url, &file(folder.path(), 3), &[]);
    config.tenant = "nobody".parse().unwrap();
    let error = producer::import(config, CancellationToken::new())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("tenant 'nobody' is not known"),
        "{error}"
    );
    producer.nothing_written().await;
}

/// The most memory a process has had, in KiB; none once it is gone.
fn most_memory(process: &tokio::process::Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()?)).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_is_killed_is_run_again_in_little_memory() {
    const TICKETS: i64 = 8000;
    let producer = Running::start("import_killed").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tickets.jsonl");
    // 64 MB, more than the process may take.
    let body = "lorem ipsum ".repeat(670);
    let line = |number| format!("{{\"subject\":\"n {number}\",\"body\":\"{body}\"}}\n");
    std::fs::write(&path, (0..TICKETS).map(line).collect::<String>()).unwrap();
    let import = || {
        tokio::process::Command::new(env!("CARGO_BIN_EXE_producer"))
            .args(["import", path.to_str().unwrap(), "--tenant", "acme"])
            .env("DATABASE_URL", &producer.site.database_url)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    };
    let mut first = import();
    while producer.count("tickets").await < 500 {
        assert_eq!(first.try_wait().unwrap(), None, "it ended too early");
    }
    first.kill().await.unwrap();
    assert!(producer.count("tickets").await < TICKETS);
    let mut second = import();
    let mut most = 0;
    let ended = loop {
        most = most.max(most_memory(&second).unwrap_or(0));
        if let Some(status) = second.try_wait().unwrap() {
            break status;
        }
        tokio::task::yield_now().await;
    };
    assert!(ended.success(), "{ended}");
    assert_eq!(producer.count("tickets").await, TICKETS);
    assert_eq!(producer.count("outbox_events").await, TICKETS);
    assert!(0 < most && most < 48 * 1024, "{most} KiB");
}
