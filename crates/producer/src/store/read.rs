//! Reading tickets, in a transaction that has proved its key and set its tenant.

use runtime::database::{Again, DatabaseError, Transaction};
use tokio_postgres::Row;
use uuid::Uuid;

use super::Store;
use super::write::{Answer, Outcome};
use crate::keys::Caller;

/// A ticket as JSON.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) ticket: String,
    pub(crate) version: i64,
}

/// Which tickets are listed.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) status: Option<String>,
    /// Words to be found in subject or body.
    pub(crate) text: Option<String>,
    /// The last id of the page before.
    pub(crate) after: Option<Uuid>,
    pub(crate) limit: i64,
}

/// One page, newest first.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) tickets: Vec<String>,
    /// Where the next page starts, if there may be one.
    pub(crate) next: Option<Uuid>,
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The caller's key is no longer a live one of the tenant.
    #[error("the key is no longer valid")]
    Unauthorized,
    /// The database cannot be asked.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<tokio_postgres::Error> for ReadError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

impl Store {
    /// A ticket of the caller's tenant.
    pub(crate) async fn get(&self, caller: &Caller, id: Uuid) -> Result<Option<Found>, ReadError> {
        let mut again = Again::within(self.within);
        loop {
            let read = self
                .database
                .transaction(again.left(), async |transaction| {
                    enter(transaction, caller).await?;
                    get(transaction, caller, id).await
                });
            match read.await {
                Err(error) => again.after(&error).ok_or(error)?.await,
                found => return found,
            }
        }
    }

    /// A page of the caller's tenant's tickets.
    pub(crate) async fn list(&self, caller: &Caller, query: &Query) -> Result<Page, ReadError> {
        let mut again = Again::within(self.within);
        loop {
            let read = self
                .database
                .transaction(again.left(), async |transaction| {
                    enter(transaction, caller).await?;
                    let rows = select(transaction, caller, query).await?;
                    page(&rows, query.limit)
                });
            match read.await {
                Err(error) => again.after(&error).ok_or(error)?.await,
                page => return page,
            }
        }
    }

    /// What is known of an idempotency key. It is looked at before a request that is refused is:
    /// what was accepted once is answered as it was then, whatever has changed since.
    pub(crate) async fn known(
        &self,
        caller: &Caller,
        key: &str,
        digest: &[u8],
    ) -> Result<Option<Outcome>, ReadError> {
        let mut again = Again::within(self.within);
        loop {
            let read = self
                .database
                .transaction(again.left(), async |transaction| {
                    enter(transaction, caller).await?;
                    known(transaction, caller, key, digest).await
                });
            match read.await {
                Err(error) => again.after(&error).ok_or(error)?.await,
                known => return known,
            }
        }
    }
}

async fn get(
    transaction: &Transaction<'_>,
    caller: &Caller,
    id: Uuid,
) -> Result<Option<Found>, ReadError> {
    let statement = transaction
        .prepare_cached(include_str!("../sql/get_ticket.sql"))
        .await?;
    let tenant = caller.tenant.as_str();
    let row = transaction.query_opt(&statement, &[&tenant, &id]).await?;
    let found = |row: Row| {
        Ok(Found {
            ticket: row.try_get("ticket")?,
            version: row.try_get("version")?,
        })
    };
    row.map(found).transpose()
}

async fn known(
    transaction: &Transaction<'_>,
    caller: &Caller,
    key: &str,
    digest: &[u8],
) -> Result<Option<Outcome>, ReadError> {
    let statement = transaction
        .prepare_cached(include_str!("../sql/find_idempotency_key.sql"))
        .await?;
    let tenant = caller.tenant.as_str();
    let row = transaction.query_opt(&statement, &[&tenant, &key]).await?;
    row.map(|row| outcome(&row, digest)).transpose()
}

fn outcome(row: &Row, digest: &[u8]) -> Result<Outcome, ReadError> {
    let first: &[u8] = row.try_get("request_digest")?;
    if first != digest {
        return Ok(Outcome::Reused);
    }
    let body: &[u8] = row.try_get("response")?;
    Ok(Outcome::Written {
        replayed: true,
        answer: Answer {
            body: String::from_utf8_lossy(body).into_owned(),
            etag: row.try_get("etag")?,
            location: row.try_get("location")?,
        },
    })
}

/// Proves the key and sets the tenant, for this transaction only.
pub(super) async fn enter(transaction: &Transaction<'_>, caller: &Caller) -> Result<(), ReadError> {
    let statement = transaction
        .prepare_cached(include_str!("../sql/enter.sql"))
        .await?;
    let (tenant, key_hash) = (caller.tenant.as_str(), &caller.key_hash[..]);
    let row = transaction
        .query_one(&statement, &[&tenant, &key_hash])
        .await?;
    if row.try_get(0)? {
        Ok(())
    } else {
        Err(ReadError::Unauthorized)
    }
}

/// One row more than the page has, to know whether there is another page.
async fn select(
    transaction: &Transaction<'_>,
    caller: &Caller,
    query: &Query,
) -> Result<Vec<Row>, ReadError> {
    let Query {
        status,
        text,
        after,
        limit,
    } = query;
    let (tenant, most) = (caller.tenant.as_str(), limit + 1);
    let rows = match text {
        None => {
            let statement = transaction
                .prepare_cached(include_str!("../sql/list_tickets.sql"))
                .await?;
            transaction
                .query(&statement, &[&tenant, status, after, &most])
                .await?
        }
        Some(text) => {
            let statement = transaction
                .prepare_cached(include_str!("../sql/search_tickets.sql"))
                .await?;
            transaction
                .query(&statement, &[&tenant, status, after, &most, text])
                .await?
        }
    };
    Ok(rows)
}

/// Search is a little behind the tickets, so a row may lack its ticket: the page is then shorter.
fn page(rows: &[Row], limit: i64) -> Result<Page, ReadError> {
    let limit = usize::try_from(limit).unwrap_or(0);
    let shown = &rows[..rows.len().min(limit)];
    let mut tickets = Vec::with_capacity(shown.len());
    for row in shown {
        let ticket: Option<String> = row.try_get("ticket")?;
        tickets.extend(ticket);
    }
    let next = match shown.last() {
        Some(last) if rows.len() > limit => Some(last.try_get("ticket_id")?),
        _ => None,
    };
    Ok(Page { tickets, next })
}
