//! The examples run as they are, and what they record is there byte for byte.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sandbox::Site;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

async fn site(name: &str) -> Site {
    let sandbox = sandbox::shared().await.expect("the sandbox starts");
    sandbox.site(name).await.expect("a site")
}

fn run(site: &Site, command: &mut Command) -> Output {
    let output = command
        .current_dir(root())
        .env("DATABASE_URL", &site.database_url)
        .output();
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Installs packages into a folder of the project's own. False, with a word, if there is no such
/// program or the registry is away; anything else is a failure.
fn installed(folder: &Path, command: &mut Command) -> bool {
    if folder.is_dir() {
        return true;
    }
    let Ok(output) = command.output() else {
        eprintln!("SKIPPED: {command:?} is not installed here");
        return false;
    };
    let said = String::from_utf8_lossy(&output.stderr).to_lowercase();
    let away = [
        "could not resolve",
        "network",
        "enotfound",
        "econnrefused",
        "etimedout",
        "no matching distribution",
        "connection",
    ];
    if !output.status.success() {
        assert!(away.iter().any(|word| said.contains(word)), "{said}");
        eprintln!("SKIPPED: the registry is away");
    }
    output.status.success()
}

/// One event of the invoice with the backslash in its payload, under the id that was printed.
async fn recorded_once(site: &Site, output: &Output) {
    let printed = String::from_utf8_lossy(&output.stdout);
    let client = site.database().await.unwrap();
    let row = client
        .query_one(
            "select count(*), min(event_id::text), min(convert_from(payload, 'UTF8')) \
             from ticketflow.outbox_events \
             where event_type = 'invoice.paid' and source = 'billing' and aggregate_id = '2026-118'",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
    assert!(printed.contains(row.get::<_, &str>(1)), "{printed}");
    assert_eq!(row.get::<_, &str>(2), r#"{"path":"C:\\temp"}"#);
    let paid = client
        .query_one("select paid from invoices", &[])
        .await
        .unwrap();
    assert!(paid.get::<_, bool>(0));
}

#[tokio::test]
async fn from_psql() {
    let site = site("example_psql").await;
    let mut psql = Command::new("psql");
    let output = run(
        &site,
        psql.args([
            &site.database_url,
            "-X",
            "-At",
            "-f",
            "deploy/examples/record.sql",
        ]),
    );
    recorded_once(&site, &output).await;
    let client = site.database().await.unwrap();
    let all = "select string_agg(event_type || coalesce(version::text, '-'), ' ' order by position) \
        from ticketflow.outbox_events";
    let all = client.query_one(all, &[]).await.unwrap();
    assert_eq!(
        all.get::<_, &str>(0),
        "invoice.paid1 invoice.reminder- invoice.sent1 invoice.sent1"
    );
}

#[tokio::test]
async fn from_python() {
    let folder = root().join(".tools/examples/python");
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--target",
    ])
    .arg(&folder)
    .arg("psycopg[binary]");
    if !installed(&folder, &mut pip) {
        return;
    }
    let site = site("example_python").await;
    let mut python = Command::new("python3");
    let output = run(
        &site,
        python
            .arg("deploy/examples/record.py")
            .env("PYTHONPATH", &folder),
    );
    recorded_once(&site, &output).await;
}

#[tokio::test]
async fn from_node() {
    let folder = root().join(".tools/examples/node");
    let modules = folder.join("node_modules");
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-save", "--prefix"])
        .arg(&folder)
        .arg("pg@8");
    if !installed(&modules, &mut npm) {
        return;
    }
    let site = site("example_node").await;
    let mut node = Command::new("node");
    let output = run(
        &site,
        node.arg("deploy/examples/record.js")
            .env("NODE_PATH", &modules),
    );
    recorded_once(&site, &output).await;
}

#[tokio::test]
async fn from_rust() {
    let site = site("example_rust").await;
    // Built with this test, beside its folder.
    let test = std::env::current_exe().unwrap();
    let example = test
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/record");
    let output = run(&site, &mut Command::new(example));
    recorded_once(&site, &output).await;
}
