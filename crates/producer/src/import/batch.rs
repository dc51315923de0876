//! A batch: so many tickets as one transaction takes, and their writing.

use std::time::Duration;

use event::TenantId;
use runtime::backoff::Backoff;
use runtime::database::{Database, DatabaseError, Remedy};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use uuid::{Builder, Uuid};

use crate::ticket::NewTicket;

const AGAIN_BASE: Duration = Duration::from_millis(50);
const AGAIN_CAP: Duration = Duration::from_secs(5);

/// Tickets that go into one transaction.
#[derive(Debug, Default)]
pub(super) struct Batch {
    ids: Vec<Uuid>,
    event_ids: Vec<Uuid>,
    tickets: Vec<NewTicket>,
    bytes: usize,
}

impl Batch {
    /// Adds a line's ticket.
    pub(super) fn add(&mut self, id: Uuid, ticket: NewTicket, bytes: usize) {
        self.ids.push(id);
        self.event_ids.push(Uuid::now_v7());
        self.tickets.push(ticket);
        self.bytes += bytes;
    }

    pub(super) fn len(&self) -> usize {
        self.tickets.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes the tickets that are not there yet and says how many those were. A database that is
    /// away is waited for; an answer that got lost is asked for again, which is harmless.
    pub(super) async fn write(
        &self,
        database: &Database,
        tenant: &TenantId,
        patience: Duration,
    ) -> Result<u64, DatabaseError> {
        let until = Instant::now() + patience;
        let mut backoff = Backoff::new(AGAIN_BASE, AGAIN_CAP);
        loop {
            let error = match self.once(database, tenant).await {
                Ok(made) => return Ok(made),
                Err(error) => error,
            };
            // Another import of the same file was quicker: next time its tickets are there.
            let quicker = error.told().and_then(|told| told.constraint.as_deref());
            let passes = match error.remedy() {
                Remedy::Again | Remedy::Wait | Remedy::Look => true,
                Remedy::OtherData => quicker == Some("tickets_pkey"),
                Remedy::Person => false,
            };
            let wait = backoff.next_delay();
            if !passes || Instant::now() + wait >= until {
                return Err(error);
            }
            tracing::warn!(%error, ?wait, "the batch again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn once(&self, database: &Database, tenant: &TenantId) -> Result<u64, DatabaseError> {
        let tickets = &self.tickets;
        let text = |of: fn(&NewTicket) -> &str| tickets.iter().map(of).collect::<Vec<_>>();
        let assignees: Vec<_> = tickets
            .iter()
            .map(|ticket| ticket.assignee.as_deref())
            .collect();
        let payloads: Vec<_> = tickets
            .iter()
            .map(|ticket| ticket.payload.as_ref())
            .collect();
        let row = database
            .call(
                database.config().wait_timeout,
                include_str!("../sql/import_tickets.sql"),
                &[
                    &tenant.as_str(),
                    &self.ids,
                    &self.event_ids,
                    &text(|ticket| &ticket.subject),
                    &text(|ticket| &ticket.body),
                    &text(|ticket| &ticket.priority),
                    &assignees,
                    &payloads,
                ],
            )
            .await?;
        let made: i64 = row.try_get(0)?;
        Ok(made.unsigned_abs())
    }
}

/// The id of a line's ticket: the same whenever the same line is imported for the same tenant.
pub(super) fn ticket_id(tenant: &TenantId, number: u64, line: &[u8]) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(tenant.as_str());
    hash.update(format!("\n{number}\n"));
    hash.update(line);
    let hash: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}
