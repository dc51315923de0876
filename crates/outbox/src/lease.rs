//! Keeping a lease, and writing a try down before it is made.

use std::collections::HashMap;
use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use crate::error::OutboxError;
use crate::key::{EventKey, LaneKey, LeaseToken};
use crate::statement;

/// A lane and what it is leased under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLane {
    /// The lane.
    pub lane: LaneKey,
    /// The lease.
    pub token: LeaseToken,
}

/// Renews leases on a connection of its own, so that it waits for nobody.
#[derive(Debug)]
pub struct Renewal(Statement);

impl Renewal {
    /// Prepares the statement on a connection.
    ///
    /// # Errors
    /// [`OutboxError`] of the database.
    pub async fn prepare(client: &Client) -> Result<Self, OutboxError> {
        Ok(Self(client.prepare(include_str!("sql/renew.sql")).await?))
    }

    /// Renews the leases of these lanes. Answers how many lanes each lease still has; one that
    /// somebody is changing at this moment is not among them.
    ///
    /// # Errors
    /// [`OutboxError`] of the database.
    pub async fn renew(
        &self,
        client: &Client,
        held: &[HeldLane],
        lease: Duration,
    ) -> Result<HashMap<LeaseToken, usize>, OutboxError> {
        let tenants: Vec<&str> = held
            .iter()
            .map(|held| held.lane.tenant_id.as_str())
            .collect();
        let lanes: Vec<i16> = held.iter().map(|held| held.lane.lane).collect();
        let tokens: Vec<Uuid> = held.iter().map(|held| held.token.uuid()).collect();
        let values: [&(dyn ToSql + Sync); 4] = [&tenants, &lanes, &tokens, &lease.as_secs_f64()];
        let mut renewed: HashMap<LeaseToken, usize> = HashMap::new();
        for row in client.query(&self.0, &values).await? {
            *renewed.entry(LeaseToken::of(row.try_get(0)?)).or_default() += 1;
        }
        Ok(renewed)
    }
}

/// Writes down that an event is about to be published, before it is. Answers how many tries are
/// written now; none if the lease or the event is gone.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn write_try(
    transaction: &Transaction<'_>,
    event: &EventKey,
    token: LeaseToken,
) -> Result<Option<i16>, OutboxError> {
    let text = include_str!("sql/write_try.sql");
    let values: [&(dyn ToSql + Sync); 4] = [
        &event.event_id,
        &event.tenant_id,
        &event.source,
        &token.uuid(),
    ];
    let rows = statement::rows(transaction, text, &values).await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
}
