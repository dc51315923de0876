//! The migrations of `migrations/`, embedded: apply them, and tell tables of another version.
//!
//! The history is kept in the schema `ticketflow` itself. Migrating takes an advisory lock, since
//! the runner takes none: any number may start at once on an empty database.

mod check;
mod migrate;

#[allow(missing_docs, reason = "what the macro makes has none")]
mod embedded {
    refinery::embed_migrations!("../../migrations");
}

pub use check::{check, version_of};
pub use migrate::{Migrated, migrate};

/// The version of the tables that this program works with: that of the newest migration.
pub const SCHEMA_VERSION: i32 = match i32::from_str_radix(env!("NEWEST_MIGRATION"), 10) {
    Ok(version) => version,
    Err(_) => panic!("the build script gives a number"),
};

/// Why the tables are not as this program needs them.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// There are none, or they lack a migration.
    #[error(
        "the database's tables are of version {found}, this program needs {SCHEMA_VERSION}: \
         run `ticketflow migrate`"
    )]
    Older {
        /// The version of the tables; 0 if there are none.
        found: i32,
    },
    /// A newer program has migrated them.
    #[error(
        "the database's tables are of version {found}, newer than the {SCHEMA_VERSION} that this \
         program knows: use the program of that version"
    )]
    Newer {
        /// The version of the tables.
        found: i32,
    },
    /// A migration failed, and with it nothing of it was applied.
    #[error("migration failed: {0}")]
    Failed(String),
    /// The database cannot be asked.
    #[error("the version of the database's tables cannot be read")]
    Database(#[from] tokio_postgres::Error),
}
