//! Writing: a ticket, its event and its idempotency key in one transaction, and certainty about it.
//!
//! Ids are made once, by the caller, before any try. When the answer to COMMIT is lost the same
//! call is made again: under the aggregate's lock it finds the event of those ids and gives the
//! first answer, or it writes them for the first time. So a lost answer costs time, never a copy.

use std::time::Duration;

use event::TraceContext;
use runtime::backoff::Backoff;
use runtime::database::{DatabaseError, Remedy};
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::Store;
use super::read::enter;
use crate::keys::Caller;
use crate::mutant;
use crate::ticket::{Change, NewTicket};

const AGAIN_BASE: Duration = Duration::from_millis(20);
const AGAIN_CAP: Duration = Duration::from_secs(1);

/// What is the same for every try of a change.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) caller: Caller,
    pub(crate) ticket_id: Uuid,
    pub(crate) event_id: Uuid,
    pub(crate) trace: TraceContext,
    /// The key, and the digest of the request it stands for.
    pub(crate) idempotency: Option<(String, [u8; 32])>,
}

/// What a call of the database says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Written, by this call or by an earlier one of the same request.
    Written { answer: Answer, replayed: bool },
    /// The key belongs to another request.
    Reused,
    /// The key is taken by a request that is still under way.
    InFlight,
    /// The caller's key is no longer a live one of the tenant.
    Unauthorized,
    /// The tenant has no such ticket.
    Missing,
    /// The ticket has another version.
    Stale,
}

/// What the caller gets for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) body: String,
    pub(crate) etag: String,
    pub(crate) location: String,
}

/// Why a change has no outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// Nothing was written.
    #[error(transparent)]
    NotWritten(#[from] DatabaseError),
    /// The answer to COMMIT was lost, and could not be found out in time.
    #[error("the answer to COMMIT was lost, and what became of it could not be found out in time")]
    Unknown,
}

impl Store {
    /// Makes a ticket.
    pub(crate) async fn create(
        &self,
        request: &Request,
        ticket: &NewTicket,
    ) -> Result<Outcome, WriteError> {
        let (key, digest) = idempotency(request);
        self.certainly(
            include_str!("../sql/create_ticket.sql"),
            &[
                &request.caller.tenant.as_str(),
                &&request.caller.key_hash[..],
                &request.ticket_id,
                &request.event_id,
                &ticket.subject,
                &ticket.body,
                &ticket.priority,
                &ticket.assignee,
                &ticket.payload.as_ref(),
                &trace(&request.trace),
                &key,
                &digest,
            ],
        )
        .await
    }

    /// Changes a ticket that has one of the expected versions.
    pub(crate) async fn update(
        &self,
        request: &Request,
        expected: Option<&[i64]>,
        change: &Change,
    ) -> Result<Outcome, WriteError> {
        if mutant::is_planted(mutant::TICKET_BEFORE_EVENT) {
            self.change_without_event(request).await?;
        }
        let (key, digest) = idempotency(request);
        self.certainly(
            include_str!("../sql/update_ticket.sql"),
            &[
                &request.caller.tenant.as_str(),
                &&request.caller.key_hash[..],
                &request.ticket_id,
                &request.event_id,
                &expected,
                &change.subject,
                &change.body,
                &change.status,
                &change.priority,
                &change.assignee.as_ref().and_then(Option::as_ref),
                &change.assignee.is_some(),
                &change.payload.as_ref(),
                &trace(&request.trace),
                &key,
                &digest,
            ],
        )
        .await
    }

    /// What a planted bug does, see [`mutant::TICKET_BEFORE_EVENT`].
    async fn change_without_event(&self, request: &Request) -> Result<(), WriteError> {
        let text = include_str!("../sql/mutant_change.sql");
        let (tenant, ticket) = (request.caller.tenant.as_str(), request.ticket_id);
        let change = self.database.transaction(self.within, async |transaction| {
            let entered = enter(transaction, &request.caller).await;
            entered.map_err(|_| DatabaseError::Deadline(self.within))?;
            transaction.execute(text, &[&tenant, &ticket]).await?;
            Ok::<_, DatabaseError>(())
        });
        Ok(change.await?)
    }

    /// Calls until it is certain what became of it, as long as a request may take.
    async fn certainly(
        &self,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Outcome, WriteError> {
        let until = Instant::now() + self.within;
        let mut backoff = Backoff::new(AGAIN_BASE, AGAIN_CAP);
        let mut unknown = false;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let start = left.min(self.database.config().wait_timeout);
            let called = self.database.call(start, text, values).await;
            match called.and_then(|row| read(&row)) {
                Ok(outcome) if !unknown || is_certain(&outcome) => return Ok(outcome),
                Ok(_) => {}
                Err(error) => match error.remedy() {
                    Remedy::Look => {
                        metrics::counter!(crate::metrics::LOST_ANSWERS).increment(1);
                        tracing::warn!(%error, "looking again what became of a commit");
                        unknown = true;
                    }
                    Remedy::Again => tracing::debug!(%error, "calling again"),
                    Remedy::Wait | Remedy::OtherData | Remedy::Person => {
                        if !unknown {
                            return Err(error.into());
                        }
                        tracing::debug!(%error, "looking again");
                    }
                },
            }
            let wait = backoff.next_delay();
            if Instant::now() + wait >= until {
                return Err(match unknown {
                    true => WriteError::Unknown,
                    false => DatabaseError::Deadline(self.within).into(),
                });
            }
            tokio::time::sleep(wait).await;
        }
    }
}

/// Whether an outcome after a lost answer tells what became of the lost one. The others may come
/// of a first try that is still under way, or say nothing about it.
fn is_certain(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Written { .. } | Outcome::Reused | Outcome::Stale => true,
        Outcome::InFlight | Outcome::Unauthorized | Outcome::Missing => false,
    }
}

fn idempotency(request: &Request) -> (Option<&str>, Option<&[u8]>) {
    let both = request.idempotency.as_ref();
    both.map(|(key, digest)| (key.as_str(), &digest[..]))
        .unzip()
}

fn trace(context: &TraceContext) -> Value {
    let named = [
        ("traceparent", &context.traceparent),
        ("tracestate", &context.tracestate),
    ];
    let given = named
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Value::from(value.as_deref()?))));
    Value::Object(Map::from_iter(given))
}

fn read(row: &Row) -> Result<Outcome, DatabaseError> {
    let outcome: &str = row.try_get("outcome")?;
    Ok(match outcome {
        "reused" => Outcome::Reused,
        "in_flight" => Outcome::InFlight,
        "unauthorized" => Outcome::Unauthorized,
        "missing" => Outcome::Missing,
        "stale" => Outcome::Stale,
        written => Outcome::Written {
            replayed: written == "replayed",
            answer: Answer {
                body: row.try_get("response")?,
                etag: row.try_get("etag")?,
                location: row.try_get("location")?,
            },
        },
    })
}
