//! The producer's baseline: `pgbench` writing the same rows.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::process::Command;

use crate::rig::Rig;

/// The same rows, as a program without TicketFlow writes them: a transaction of three inserts.
pub const TRANSACTION: &str = include_str!("sql/pgbench_transaction.sql");
/// The same rows in one statement of one round trip: as little as they can cost.
pub const STATEMENT: &str = include_str!("sql/pgbench_statement.sql");

/// Transactions a second of a script, of so many clients with prepared statements.
///
/// # Errors
/// If it is not installed, fails, or a transaction of it does.
pub async fn run(rig: &Rig, text: &str, clients: usize, lasting: Duration) -> anyhow::Result<f64> {
    let script = std::env::temp_dir().join(format!("{}.sql", rig.site.name));
    std::fs::write(&script, text).context("write pgbench's script")?;
    let output = Command::new(program())
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=2"])
        .arg(format!("--client={clients}"))
        .arg(format!("--time={}", lasting.as_secs().max(1)))
        .arg(format!("--random-seed={}", rig.seed))
        .arg("--file")
        .arg(&script)
        .arg(&rig.site.database_url)
        .stdin(Stdio::null())
        .output()
        .await
        .context("run pgbench")?;
    let _ = std::fs::remove_file(&script);
    let said = String::from_utf8_lossy(&output.stdout);
    let tps = said.lines().find_map(|line| line.strip_prefix("tps = "));
    let tps = tps.and_then(|rest| rest.split(' ').next()?.parse().ok());
    match tps {
        Some(tps) if output.status.success() => Ok(tps),
        _ => bail!("pgbench: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// On the path, or where Debian keeps what belongs to one version.
fn program() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let candidates = versions.map(|version| version.path().join("bin/pgbench"));
    let mut found: Vec<_> = candidates.filter(|path| path.exists()).collect();
    found.sort();
    found.pop().unwrap_or_else(|| PathBuf::from("pgbench"))
}
