//! Claiming: due tasks become `sending`, which is committed before anything goes out.

use std::time::Duration;

use bytes::Bytes;
use runtime::database::{Database, DatabaseError, Transaction};
use tokio::time::Instant;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::config::Config;
use crate::endpoint::{Endpoint, Tenants};
use crate::mutant;
use crate::task::Task;

/// So many tenants are looked at in one claim.
const TENANTS: i64 = 64;
/// A claim that takes longer is given up; what it may have claimed comes back by its lease.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// Where the walk over the tenants goes on, so that each has its turn.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    after: String,
}

/// What a claim brought.
#[derive(Debug)]
pub(crate) struct Claimed {
    /// The tasks, each under the token.
    pub(crate) tasks: Vec<Task>,
    /// What settles them.
    pub(crate) token: Uuid,
    /// Whether there are tenants that were not looked at.
    pub(crate) more: bool,
}

/// Claims at most `room` tasks of the endpoint's tenants whose turn it is.
pub(crate) async fn claim(
    database: &Database,
    config: &Config,
    endpoint: &Endpoint,
    walk: &mut Walk,
    room: usize,
) -> Result<Claimed, DatabaseError> {
    let most = i64::try_from(room).unwrap_or(i64::MAX);
    let lease_ms = i64::try_from(config.lease.as_millis()).unwrap_or(i64::MAX);
    let payload = endpoint.provider.needs_payload();
    let token = Uuid::new_v4();
    let rows = database.transaction(DEADLINE, async |transaction| {
        let turn = walk.turn(transaction, &endpoint.tenants).await?;
        if turn.is_empty() {
            return Ok(Vec::new());
        }
        let claim = transaction
            .prepare_cached(include_str!("sql/claim.sql"))
            .await?;
        let (pools, leased_by) = (&config.pools, &config.leased_by);
        let rows = transaction
            .query(
                &claim,
                &[&turn, pools, &most, &token, leased_by, &lease_ms, &payload],
            )
            .await?;
        Ok::<_, DatabaseError>(rows)
    });
    let rows = rows.await?;
    let claimed = Instant::now();
    let tasks = rows.iter().map(|row| task(row, claimed));
    Ok(Claimed {
        tasks: tasks.collect::<Result<_, _>>()?,
        token,
        more: !walk.after.is_empty(),
    })
}

impl Walk {
    /// Those of the tenants whose turn it is; from the beginning again after the last.
    async fn turn(
        &mut self,
        transaction: &Transaction<'_>,
        tenants: &Tenants,
    ) -> Result<Vec<String>, DatabaseError> {
        if let Tenants::Only(tenants) = tenants {
            return Ok(tenants.clone());
        }
        let after = std::mem::take(&mut self.after);
        let walk = transaction
            .prepare_cached(include_str!("sql/walk.sql"))
            .await?;
        let rows = transaction.query(&walk, &[&after, &TENANTS]).await?;
        let mut turn: Vec<String> = rows
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()?;
        if i64::try_from(turn.len()) == Ok(TENANTS) {
            self.after = turn.last().cloned().unwrap_or_default();
        }
        if mutant::is_planted(mutant::NO_TURNS) {
            turn.truncate(1);
            self.after.clear();
        }
        turn.retain(|tenant_id| tenants.include(tenant_id));
        Ok(turn)
    }
}

fn task(row: &Row, claimed: Instant) -> Result<Task, DatabaseError> {
    Ok(Task {
        task_id: row.try_get("task_id")?,
        tenant_id: row.try_get("tenant_id")?,
        ticket_id: row.try_get("ticket_id")?,
        event_id: row.try_get("event_id")?,
        source: row.try_get("source")?,
        task_type: row.try_get("task_type")?,
        payload: Bytes::from(row.try_get::<_, Vec<u8>>("payload")?),
        created_at: row.try_get("created_at")?,
        attempts: row.try_get("attempts")?,
        in_doubt: row.try_get("in_doubt")?,
        claimed_at: row.try_get("claimed_at")?,
        claimed,
    })
}
