//! Migrating a real server.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::sync::Arc;

use sandbox::Sandbox;
use schema::{SCHEMA_VERSION, SchemaError, check, migrate, version_of};
use tokio_postgres::Client;

/// An empty database of the test's own, beside the sites of others.
async fn empty(name: &str) -> (Arc<Sandbox>, String, Client) {
    let sandbox = sandbox::shared().await.unwrap();
    let name = format!("schema_{name}_{}", std::process::id());
    sandbox.create_database(&name).await.unwrap();
    let client = sandbox.database(&name).await.unwrap();
    (sandbox, name, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn five_at_once_on_an_empty_database_all_succeed_and_one_does_the_work() {
    let (sandbox, name, client) = empty("five").await;
    assert!(matches!(
        check(&client).await,
        Err(SchemaError::Older { found: 0 })
    ));
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(sandbox.database(&name).await.unwrap());
    }
    let started: Vec<_> = clients
        .into_iter()
        .map(|mut client| tokio::spawn(async move { migrate(&mut client).await }))
        .collect();
    let mut applied = Vec::new();
    for task in started {
        applied.push(task.await.unwrap().expect("it succeeds").applied.len());
    }
    applied.sort_unstable();
    let all = usize::try_from(SCHEMA_VERSION).unwrap();
    assert_eq!(applied, [0, 0, 0, 0, all]);
    check(&client).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn several_databases_of_one_server_can_be_migrated_at_once() {
    let names = ["one", "two", "three"];
    let mut clients = Vec::new();
    for name in names {
        clients.push(empty(name).await.2);
    }
    let started: Vec<_> = clients
        .into_iter()
        .map(|mut client| tokio::spawn(async move { migrate(&mut client).await }))
        .collect();
    for task in started {
        assert_eq!(task.await.unwrap().expect("it succeeds").to, SCHEMA_VERSION);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_database_is_refused_and_left_alone() {
    let sandbox = sandbox::shared().await.unwrap();
    let site = sandbox.site("newer").await.unwrap();
    let mut client = site.database().await.unwrap();
    let newer = SCHEMA_VERSION + 1;
    let add = "insert into ticketflow.refinery_schema_history \
               select $1::int4, 'tomorrow', applied_on, '1' from ticketflow.refinery_schema_history \
               where version = 1";
    client.execute(add, &[&newer]).await.unwrap();
    let refused = migrate(&mut client).await.expect_err("it is newer");
    assert!(matches!(refused, SchemaError::Newer { found } if found == newer));
    assert!(refused.to_string().contains("newer"), "{refused}");
    assert!(matches!(
        check(&client).await,
        Err(SchemaError::Newer { .. })
    ));
    assert_eq!(version_of(&client).await.unwrap(), newer);
    // The lock is given back: another one would wait for it.
    let locks = "select count(*) from pg_locks where locktype = 'advisory' and \
                 database = (select oid from pg_database where datname = current_database())";
    let row = client.query_one(locks, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_role_can_read_the_version() {
    let sandbox = sandbox::shared().await.unwrap();
    let site = sandbox.site("version").await.unwrap();
    let client = site.database().await.unwrap();
    for role in ["producer", "relay", "consumer", "operator"] {
        let set = format!("set role ticketflow_{role}");
        client.batch_execute(&set).await.unwrap();
        check(&client).await.expect(role);
        client.batch_execute("reset role").await.unwrap();
    }
}
