//! What the tables say of a run.

use std::collections::{HashMap, HashSet};

use event::{Identity, Source, TenantId};
use tokio_postgres::{Client, Row};

use crate::error::SandboxError;

/// A row of the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRow {
    /// Type and id, with a slash between.
    pub aggregate: String,
    /// Its version; none for a delayed event.
    pub version: Option<i64>,
    /// What happened.
    pub event_type: String,
    /// `pending`, `published`, `parked` or `skipped`.
    pub state: String,
    /// The pool it went to or will go to.
    pub pool: String,
    /// The digest of its content, by the database.
    pub digest: Vec<u8>,
}

/// An entry of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The event.
    pub event: Identity,
    /// Type and id, with a slash between.
    pub aggregate: String,
    /// Its version; none for a delayed event.
    pub version: Option<i64>,
}

/// Which events an effect takes in a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Takes {
    /// The pool.
    pub pool: String,
    /// The effect.
    pub effect: String,
    /// Binding patterns.
    pub patterns: Vec<String>,
}

/// The tables of a run, as far as they concern events.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The outbox.
    pub outbox: HashMap<Identity, OutboxRow>,
    /// Digests of receipts, by effect and event.
    pub receipts: HashMap<String, HashMap<Identity, Vec<u8>>>,
    /// Deliveries that may still be applied, as effect and event.
    pub waiting: HashSet<(String, Identity)>,
    /// Events of the notification effect's tasks, one for each task, with the ticket.
    pub tasks: Vec<(Identity, String)>,
    /// The audit trail in its order.
    pub audit: Vec<AuditEntry>,
    /// Versions of the search documents, by tenant and ticket.
    pub documents: HashMap<(String, String), i64>,
    /// Versions of the tickets, by tenant and ticket.
    pub tickets: HashMap<(String, String), i64>,
    /// Which effects there are.
    pub takes: Vec<Takes>,
}

impl Facts {
    /// Reads them; call it when nothing moves any more.
    ///
    /// # Errors
    /// [`SandboxError::Database`] if the tables cannot be read.
    pub async fn read(client: &Client) -> Result<Self, SandboxError> {
        let mut facts = Self::default();
        for row in read(client, include_str!("../sql/ledger_outbox.sql")).await? {
            facts.outbox.insert(identity(&row)?, outbox_row(&row));
        }
        for row in read(client, include_str!("../sql/ledger_receipts.sql")).await? {
            let effect: String = row.get(3);
            let of_effect = facts.receipts.entry(effect).or_default();
            of_effect.insert(identity(&row)?, row.get(4));
        }
        for row in read(client, include_str!("../sql/ledger_waiting.sql")).await? {
            facts.waiting.insert((row.get(3), identity(&row)?));
        }
        for row in read(client, include_str!("../sql/ledger_tasks.sql")).await? {
            facts.tasks.push((identity(&row)?, row.get(3)));
        }
        for row in read(client, include_str!("../sql/ledger_audit.sql")).await? {
            facts.audit.push(AuditEntry {
                event: identity(&row)?,
                aggregate: row.get(3),
                version: row.get(4),
            });
        }
        facts.documents = versions(client, include_str!("../sql/ledger_documents.sql")).await?;
        facts.tickets = versions(client, include_str!("../sql/ledger_tickets.sql")).await?;
        let takes = read(client, include_str!("../sql/ledger_takes.sql")).await?;
        facts.takes = takes.iter().map(takes_of).collect();
        Ok(facts)
    }

    /// The effects that take an event, by name.
    pub(crate) fn effects_of(&self, row: &OutboxRow) -> impl Iterator<Item = &str> {
        let fits = |takes: &&Takes| {
            takes.pool == row.pool
                && takes
                    .patterns
                    .iter()
                    .any(|pattern| super::matches(pattern, &row.event_type))
        };
        self.takes
            .iter()
            .filter(fits)
            .map(|takes| takes.effect.as_str())
    }
}

async fn read(client: &Client, sql: &str) -> Result<Vec<Row>, SandboxError> {
    client
        .query(sql, &[])
        .await
        .map_err(SandboxError::database("read the tables for the ledger"))
}

async fn versions(
    client: &Client,
    sql: &str,
) -> Result<HashMap<(String, String), i64>, SandboxError> {
    let rows = read(client, sql).await?;
    Ok(rows
        .iter()
        .map(|row| ((row.get(0), row.get(1)), row.get(2)))
        .collect())
}

/// The first three columns of most of the statements.
fn identity(row: &Row) -> Result<Identity, SandboxError> {
    let invalid = |error: event::InvalidName| SandboxError::Io {
        what: "read an identity for the ledger".to_owned(),
        source: std::io::Error::other(error),
    };
    Ok(Identity {
        event_id: row.get(0),
        tenant_id: TenantId::parse(row.get(1)).map_err(invalid)?,
        source: Source::parse(row.get(2)).map_err(invalid)?,
    })
}

fn outbox_row(row: &Row) -> OutboxRow {
    OutboxRow {
        aggregate: row.get(3),
        version: row.get(4),
        event_type: row.get(5),
        state: row.get(6),
        pool: row.get(7),
        digest: row.get(8),
    }
}

fn takes_of(row: &Row) -> Takes {
    Takes {
        pool: row.get(0),
        effect: row.get(1),
        patterns: row.get(2),
    }
}
