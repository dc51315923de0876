//! `migrate`: the tables to this version.

use runtime::database::Database;
use serde_json::json;

use crate::cli::Global;
use crate::context;
use crate::failure::Failure;
use crate::report::Report;

/// Applies what is missing, on a connection of its own and as the login itself.
pub(crate) async fn run(global: &Global) -> Result<Report, Failure> {
    let database = Database::open(context::config(global)?)?;
    let mut session = database.session("migrate").await?;
    let migrated = schema::migrate(&mut session).await?;
    let (from, to) = (migrated.from, migrated.to);
    let sentence = if migrated.applied.is_empty() {
        format!("nothing to do: the tables are of version {to}")
    } else {
        format!(
            "migrated from version {from} to {to}: {}",
            migrated.applied.join(", ")
        )
    };
    let json = json!({ "from": from, "to": to, "applied": migrated.applied });
    Ok(Report::done(sentence, json))
}
