//! What an operator does with parked tasks: list them, send them round again, give them up. Each
//! change takes only rows it has locked and still finds parked, and leaves a row in
//! `operator_actions`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use runtime::database::DatabaseError;
use tokio_postgres::{GenericClient, Row, Transaction};
use uuid::Uuid;

/// Which parked tasks are meant; what is not said does not narrow.
#[derive(Debug, Clone, Default)]
pub struct Which {
    /// Of this tenant.
    pub tenant_id: Option<String>,
    /// With this in `<reason>: <what was said>`, e.g. `refused` or `status 404`.
    pub reason: Option<String>,
    /// These.
    pub task_ids: Option<Vec<Uuid>>,
    /// Written down at least so long ago.
    pub older_than: Option<Duration>,
    /// At most so many, the oldest first.
    pub most: i64,
}

/// Who changes something, and why.
#[derive(Debug, Clone)]
pub struct Action {
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// A task as an operator sees it.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its tenant.
    pub tenant_id: String,
    /// Its id, and the key under which the provider may know it.
    pub task_id: Uuid,
    /// The ticket it is about.
    pub ticket_id: Uuid,
    /// The event that caused it.
    pub event_id: Uuid,
    /// What kind of task it is.
    pub task_type: String,
    /// Its status.
    pub status: String,
    /// Why it is parked, if it is.
    pub parked_reason: Option<String>,
    /// How often it was tried.
    pub attempts: i64,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When it was written down.
    pub created_at: DateTime<Utc>,
}

/// The parked tasks, the oldest first.
///
/// # Errors
/// [`DatabaseError`].
pub async fn parked(
    client: &impl GenericClient,
    which: &Which,
) -> Result<Vec<Listed>, DatabaseError> {
    let older = milliseconds(which.older_than);
    let parked = include_str!("sql/parked.sql");
    let rows = client
        .query(
            parked,
            &[
                &which.tenant_id,
                &which.reason,
                &which.task_ids,
                &older,
                &which.most,
            ],
        )
        .await?;
    rows.iter().map(listed).collect()
}

/// One task, whatever became of it.
///
/// # Errors
/// [`DatabaseError`].
pub async fn task(
    client: &impl GenericClient,
    task_id: Uuid,
) -> Result<Option<Listed>, DatabaseError> {
    let row = client
        .query_opt(include_str!("sql/task.sql"), &[&task_id])
        .await?;
    row.as_ref().map(listed).transpose()
}

/// Sends parked tasks round again: their attempts start anew, and they become due spread over
/// `spread`, so that an endpoint that was down is not flooded. One whose outcome is unknown is still
/// in doubt. Says which.
///
/// # Errors
/// [`DatabaseError`].
pub async fn redrive(
    transaction: &Transaction<'_>,
    which: &Which,
    spread: Duration,
    action: &Action,
) -> Result<Vec<Uuid>, DatabaseError> {
    let older = milliseconds(which.older_than);
    let spread = milliseconds(Some(spread));
    let rows = transaction
        .query(
            include_str!("sql/redrive.sql"),
            &[
                &which.tenant_id,
                &which.reason,
                &which.task_ids,
                &older,
                &which.most,
                &spread,
                &action.actor,
                &action.reason,
            ],
        )
        .await?;
    ids(&rows)
}

/// Gives parked tasks up. It does not recall: one whose outcome is unknown may have been taken.
/// Says which.
///
/// # Errors
/// [`DatabaseError`].
pub async fn skip(
    transaction: &Transaction<'_>,
    which: &Which,
    action: &Action,
) -> Result<Vec<Uuid>, DatabaseError> {
    let older = milliseconds(which.older_than);
    let rows = transaction
        .query(
            include_str!("sql/skip.sql"),
            &[
                &which.tenant_id,
                &which.reason,
                &which.task_ids,
                &older,
                &which.most,
                &action.actor,
                &action.reason,
            ],
        )
        .await?;
    ids(&rows)
}

fn milliseconds(duration: Option<Duration>) -> Option<i64> {
    duration.map(|duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

fn ids(rows: &[Row]) -> Result<Vec<Uuid>, DatabaseError> {
    let ids: Result<_, _> = rows.iter().map(|row| row.try_get(0)).collect();
    Ok(ids?)
}

fn listed(row: &Row) -> Result<Listed, DatabaseError> {
    Ok(Listed {
        tenant_id: row.try_get("tenant_id")?,
        task_id: row.try_get("task_id")?,
        ticket_id: row.try_get("ticket_id")?,
        event_id: row.try_get("event_id")?,
        task_type: row.try_get("task_type")?,
        status: row.try_get("status")?,
        parked_reason: row.try_get("parked_reason")?,
        attempts: row.try_get("attempts")?,
        last_error: row.try_get("last_error")?,
        created_at: row.try_get("created_at")?,
    })
}
