//! What a command works with: the database, who asks, and how long a step may take.

use std::time::Duration;

use deadpool_postgres::Transaction;
use runtime::database::{Database, DatabaseConfig};
use runtime::settings::SecretUrl;
use tokio_postgres::types::ToSql;

use crate::cli::Global;
use crate::failure::Failure;
use crate::listing::Listing;

/// Values of a statement.
pub(crate) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A checked database, and who asks.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) database: Database,
    pub(crate) actor: String,
    pub(crate) deadline: Duration,
}

impl Context {
    /// Reaches the database in the operator's role and compares versions.
    pub(crate) async fn open(global: &Global) -> Result<Self, Failure> {
        let mut config = config(global)?;
        config.role = Some(global.database_role.clone()).filter(|role| !role.is_empty());
        let database = Database::open(config)?;
        database.check_schema().await?;
        Ok(Self {
            database,
            actor: actor(global),
            deadline: global.deadline,
        })
    }

    /// The rows of one statement.
    pub(crate) async fn list(&self, text: &str, values: Values<'_>) -> Result<Listing, Failure> {
        self.database
            .transaction(self.deadline, async |transaction| {
                list(transaction, text, values).await
            })
            .await
    }
}

/// The rows of one statement of a transaction.
pub(crate) async fn list(
    transaction: &Transaction<'_>,
    text: &str,
    values: Values<'_>,
) -> Result<Listing, Failure> {
    let statement = transaction.prepare(text).await?;
    let rows = transaction.query(&statement, values).await?;
    Listing::read(&statement, &rows)
}

/// The database as the login itself sees it: for the migrations, which make the roles.
pub(crate) fn config(global: &Global) -> Result<DatabaseConfig, Failure> {
    let mut config = DatabaseConfig::for_url("", "ticketflow");
    config.url = match (&global.database_url_file, &global.database_url) {
        (Some(file), _) => SecretUrl::File(file.clone()),
        (None, Some(url)) => SecretUrl::Given(url.clone()),
        (None, None) => {
            let told = "no database: set DATABASE_URL, or give --database-url";
            return Err(Failure::Refused(told.to_owned()));
        }
    };
    config.ca_file.clone_from(&global.database_ca_file);
    config.pool_size = 1;
    config.statement_timeout = global.deadline;
    Ok(config)
}

fn actor(global: &Global) -> String {
    let given = global.actor.clone();
    let login = || {
        ["SUDO_USER", "USER", "LOGNAME"]
            .iter()
            .find_map(|name| std::env::var(name).ok())
    };
    given.or_else(login).unwrap_or_else(|| "unknown".to_owned())
}
