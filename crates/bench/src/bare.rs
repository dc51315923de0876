//! The consumer's baseline: a loop that writes receipts and the effect's rows and does nothing
//! else. No floor, no conflicts, no order, no failure: whatever goes wrong ends it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use broker::{BatchLimits, Deliveries};
use chrono::{DateTime, Utc};
use event::Event;
use serde::Deserialize;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

/// Deliveries a transaction.
pub const BATCH: usize = 200;

/// As much of a ticket event as the search effect's row has.
#[derive(Debug, Deserialize)]
struct Body {
    ticket: Ticket,
}

#[derive(Debug, Deserialize)]
struct Ticket {
    version: i64,
    subject: String,
    body: String,
    updated_at: DateTime<Utc>,
}

struct Statements {
    receipts: Statement,
    documents: Statement,
}

/// Takes batches of a size from a queue until dropped or something goes wrong.
///
/// # Errors
/// Whatever goes wrong.
pub async fn consume(
    mut session: Client,
    mut deliveries: Deliveries,
    batch: usize,
) -> anyhow::Result<()> {
    let statements = Statements {
        receipts: session
            .prepare(include_str!("sql/bare_receipts.sql"))
            .await?,
        documents: session
            .prepare(include_str!("sql/bare_documents.sql"))
            .await?,
    };
    let limits = BatchLimits {
        deliveries: batch,
        bytes: usize::MAX,
        linger: Duration::from_millis(1),
    };
    loop {
        let batch = match deliveries.batch(limits).await {
            Ok(batch) => batch,
            Err(ended) => bail!("the queue: {ended}"),
        };
        let mut events = Vec::new();
        for received in batch.deliveries() {
            events.push(received.delivered.read().context("read a delivery")?);
        }
        write(&mut session, &statements, &events).await?;
        if let Err(ended) = batch.ack().await {
            bail!("the queue: {ended}");
        }
    }
}

async fn write(
    session: &mut Client,
    statements: &Statements,
    events: &[Event],
) -> anyhow::Result<()> {
    let ids: Vec<_> = events.iter().map(|event| event.identity.event_id).collect();
    let tenants: Vec<_> = events
        .iter()
        .map(|event| event.identity.tenant_id.as_str())
        .collect();
    let sources: Vec<_> = events
        .iter()
        .map(|event| event.identity.source.as_str())
        .collect();
    let digests: Vec<_> = events.iter().map(digest).collect();
    let documents = newest(events)?;
    let keys = || documents.keys();
    let all = || documents.values();
    let document_tenants: Vec<_> = keys().map(|(tenant, _)| *tenant).collect();
    let tickets: Vec<_> = keys().map(|(_, ticket)| *ticket).collect();
    let versions: Vec<_> = all().map(|ticket| ticket.version).collect();
    let subjects: Vec<_> = all().map(|ticket| ticket.subject.as_str()).collect();
    let bodies: Vec<_> = all().map(|ticket| ticket.body.as_str()).collect();
    let updated: Vec<_> = all().map(|ticket| ticket.updated_at).collect();
    let transaction = session.transaction().await?;
    transaction
        .execute(&statements.receipts, &[&ids, &tenants, &sources, &digests])
        .await?;
    transaction
        .execute(
            &statements.documents,
            &[
                &document_tenants,
                &tickets,
                &versions,
                &subjects,
                &bodies,
                &updated,
            ],
        )
        .await?;
    transaction.commit().await?;
    Ok(())
}

fn digest(event: &Event) -> Vec<u8> {
    event::Digest::of(event).as_bytes().to_vec()
}

fn newest(events: &[Event]) -> anyhow::Result<BTreeMap<(&str, Uuid), Ticket>> {
    let mut newest: BTreeMap<_, Ticket> = BTreeMap::new();
    for event in events {
        let Body { ticket } = serde_json::from_slice(&event.payload).context("read a payload")?;
        let id = Uuid::parse_str(event.aggregate.aggregate_id.as_str())?;
        let key = (event.identity.tenant_id.as_str(), id);
        if newest
            .get(&key)
            .is_none_or(|other| other.version < ticket.version)
        {
            newest.insert(key, ticket);
        }
    }
    Ok(newest)
}
