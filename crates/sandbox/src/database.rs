//! The private PostgreSQL: how it is made, started and reached.

use std::process::{Command, Stdio};

use tokio_postgres::{Client, NoTls};

use crate::error::SandboxError;
use crate::folder::{Folder, State};
use crate::launch;
use crate::options::SandboxOptions;
use crate::programs;

/// The superuser of the private database; sites connect as it and take their role by an option.
pub(crate) const SUPERUSER: &str = "postgres";

/// Makes the data folder and its configuration.
pub(crate) fn create(
    folder: &Folder,
    state: &State,
    options: &SandboxOptions,
) -> Result<(), SandboxError> {
    folder.write("password", &state.password)?;
    let mut initdb = launch::command(folder, programs::postgres_folder()?.join("initdb"));
    initdb
        .args([
            "--username",
            SUPERUSER,
            "--encoding",
            "UTF8",
            "--locale",
            "C",
        ])
        // Cleartext over loopback: a hash would cost each of many test connections milliseconds.
        .args([
            "--auth",
            "password",
            "--pwfile",
            "password",
            "--no-sync",
            "-D",
            "data",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = initdb.output().map_err(SandboxError::io("run initdb"))?;
    if !output.status.success() {
        return Err(SandboxError::Server {
            server: "PostgreSQL",
            what: "make its data folder",
            words: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    let settings = settings(state, options);
    folder.write("data/postgresql.auto.conf", &settings)
}

/// The command that becomes the server.
pub(crate) fn server_command(folder: &Folder) -> Result<Command, SandboxError> {
    let mut postgres = launch::command(folder, programs::postgres_folder()?.join("postgres"));
    postgres.arg("-D").arg(folder.at("data"));
    Ok(postgres)
}

/// The URL of one of its databases.
pub(crate) fn url(state: &State, port: u16, database: &str) -> String {
    let password = &state.password;
    format!("postgres://{SUPERUSER}:{password}@127.0.0.1:{port}/{database}")
}

/// A session as superuser, driven by a task of the current runtime.
pub(crate) async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // Its end shows as an error at the client.
    tokio::spawn(async move { connection.await.ok() });
    Ok(client)
}

fn settings(state: &State, options: &SandboxOptions) -> String {
    let switch = |on| if on { "on" } else { "off" }.to_owned();
    let own = [
        ("listen_addresses", "127.0.0.1".to_owned()),
        ("port", state.postgres_port.to_string()),
        ("unix_socket_directories", String::new()),
        ("cluster_name", state.node.clone()),
        ("max_connections", options.max_connections.to_string()),
        ("fsync", switch(options.fsync)),
        ("shared_buffers", "256MB".to_owned()),
        // Rare checkpoints, so that a measurement does not depend on when one falls.
        ("max_wal_size", "4GB".to_owned()),
        ("checkpoint_timeout", "15min".to_owned()),
        // Many databases with many partitions each share one lock table.
        ("max_locks_per_transaction", "256".to_owned()),
        ("timezone", "UTC".to_owned()),
    ];
    let asked = options.postgres_settings.iter();
    own.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .chain(asked.cloned())
        .map(|(name, value)| format!("{name} = '{}'\n", value.replace('\'', "''")))
        .collect()
}
