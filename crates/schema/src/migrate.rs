//! Applying the migrations, under a lock.

use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::embedded::migrations;
use crate::{SCHEMA_VERSION, SchemaError, check, version_of};

const HISTORY: &str = "ticketflow.refinery_schema_history";
/// Any number that nobody else on this database takes: the letters `tckt`.
const LOCK: i64 = 0x7463_6b74;
/// Roles belong to the whole server, so another database's migration can be in the way.
const TRIES: u32 = 20;

/// What [`migrate`] has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// The version before.
    pub from: i32,
    /// The version now.
    pub to: i32,
    /// What was applied, e.g. `V3__inbox`.
    pub applied: Vec<String>,
}

/// Brings the tables to [`SCHEMA_VERSION`]. Any number may do so at once: one does the work, the
/// others wait and find it done. `client` must be a connection of its own, not behind a pooler
/// of transactions, logged in as a superuser or as one who may create roles and schemas here.
///
/// # Errors
/// [`SchemaError::Newer`] if a newer program was here; nothing is changed then.
pub async fn migrate(client: &mut Client) -> Result<Migrated, SchemaError> {
    // Waiting for the one at work may take as long as it takes; a lock of a table may not.
    client
        .batch_execute("set lock_timeout = 0; set statement_timeout = 0")
        .await?;
    let lock = "select pg_advisory_lock($1)";
    client.execute(lock, &[&LOCK]).await?;
    let migrated = migrate_locked(client).await;
    let unlocked = client
        .execute("select pg_advisory_unlock($1)", &[&LOCK])
        .await;
    let migrated = migrated?;
    unlocked?;
    Ok(migrated)
}

async fn migrate_locked(client: &mut Client) -> Result<Migrated, SchemaError> {
    client.batch_execute("set lock_timeout = '10s'").await?;
    let from = version_of(client).await?;
    if from > SCHEMA_VERSION {
        return Err(SchemaError::Newer { found: from });
    }
    prepare(client).await?;
    let mut applied = Vec::new();
    for attempt in 1.. {
        match run(client, &mut applied).await {
            Ok(()) => break,
            Err(error) if attempt < TRIES && met_another(&error) => pause().await,
            Err(error) => return Err(SchemaError::Failed(told(&error))),
        }
    }
    check(client).await?;
    Ok(Migrated {
        from,
        to: SCHEMA_VERSION,
        applied,
    })
}

async fn prepare(client: &Client) -> Result<(), SchemaError> {
    for attempt in 1.. {
        match client.batch_execute(include_str!("sql/prepare.sql")).await {
            Ok(()) => break,
            Err(error) if attempt < TRIES && is_race(&error) => pause().await,
            Err(error) => return Err(SchemaError::Failed(told(&error))),
        }
    }
    Ok(())
}

async fn run(client: &mut Client, applied: &mut Vec<String>) -> Result<(), refinery::Error> {
    let mut runner = migrations::runner();
    runner.set_migration_table_name(HISTORY);
    let report = runner.run_async(client).await?;
    applied.extend(report.applied_migrations().iter().map(ToString::to_string));
    Ok(())
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(20..200))).await;
}

fn met_another(error: &refinery::Error) -> bool {
    client_error(error).is_some_and(is_race)
}

/// Two at once made the same role or granted it: the second try finds it there.
fn is_race(error: &tokio_postgres::Error) -> bool {
    let Some(server) = error.as_db_error() else {
        return false;
    };
    let codes = [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_OBJECT];
    let of_catalog = *server.code() == SqlState::INTERNAL_ERROR
        && server.message().contains("tuple concurrently");
    of_catalog || codes.contains(server.code())
}

fn client_error<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a tokio_postgres::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(client) = error.downcast_ref() {
            return Some(client);
        }
        next = error.source();
    }
    None
}

/// The server's message without DETAIL, else what the runner says.
fn told(error: &(dyn std::error::Error + 'static)) -> String {
    match client_error(error).and_then(tokio_postgres::Error::as_db_error) {
        Some(server) => {
            let code = server.code().code();
            let place = server.where_().map(|place| format!(", {place}"));
            let message = server.message();
            format!("{error}: {message} ({code}){}", place.unwrap_or_default())
        }
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
