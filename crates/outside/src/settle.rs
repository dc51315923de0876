//! Settling: what became of the tasks is written down, fenced by the token of their claim.

use std::borrow::Cow;
use std::time::Duration;

use runtime::database::{Database, DatabaseError};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::decide::Settlement;
use crate::{measures, mutant};

/// A settle that takes longer is tried again by the next cycle; it is harmless to repeat.
const DEADLINE: Duration = Duration::from_secs(10);

/// A task and what it becomes.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    pub(crate) tenant_id: String,
    pub(crate) task_id: Uuid,
    pub(crate) token: Uuid,
    pub(crate) settlement: Settlement,
}

/// The columns of `settle.sql`.
#[derive(Debug, Default)]
struct Columns {
    tenants: Vec<String>,
    tasks: Vec<Uuid>,
    tokens: Vec<Uuid>,
    statuses: Vec<&'static str>,
    waits: Vec<i64>,
    reasons: Vec<Option<&'static str>>,
    errors: Vec<Option<String>>,
    given_back: Vec<i64>,
}

/// Writes all of them down in one transaction.
pub(crate) async fn settle(database: &Database, settled: &[Settled]) -> Result<(), DatabaseError> {
    let c = columns(settled);
    let rows = database.transaction(DEADLINE, async |transaction| {
        let settle = transaction.prepare_cached(&statement()).await?;
        let values: [&(dyn ToSql + Sync); 8] = [
            &c.tenants,
            &c.tasks,
            &c.tokens,
            &c.statuses,
            &c.waits,
            &c.reasons,
            &c.errors,
            &c.given_back,
        ];
        let rows = transaction.query(&settle, &values).await?;
        Ok::<_, DatabaseError>(rows)
    });
    let mut held = std::collections::HashMap::new();
    for row in rows.await? {
        held.insert(row.try_get::<_, Uuid>(0)?, row.try_get::<_, f64>(1)?);
    }
    for task in settled {
        match held.get(&task.task_id) {
            Some(age_seconds) => measures::settled(&task.settlement, *age_seconds),
            None => lost(task),
        }
    }
    Ok(())
}

fn statement() -> Cow<'static, str> {
    let statement = include_str!("sql/settle.sql");
    match mutant::is_planted(mutant::SETTLE_WITHOUT_TOKEN) {
        true => statement
            .replace("b.lease_token = s.lease_token", "true")
            .into(),
        false => statement.into(),
    }
}

/// Its lease ran out and somebody else has it: what we know of it is no longer ours to write.
fn lost(task: &Settled) {
    metrics::counter!(measures::LEASE_LOST).increment(1);
    let Settled { task_id, token, .. } = task;
    tracing::warn!(task.id = %task_id, lease.token = %token, "a task was claimed anew meanwhile");
}

fn columns(settled: &[Settled]) -> Columns {
    let mut columns = Columns::default();
    for task in settled {
        columns.tenants.push(task.tenant_id.clone());
        columns.tasks.push(task.task_id);
        columns.tokens.push(task.token);
        columns.add(&task.settlement);
    }
    columns
}

impl Columns {
    fn add(&mut self, settlement: &Settlement) {
        let status = |in_doubt| if in_doubt { "unknown" } else { "pending" };
        let (status, wait, reason, error, given_back) = match settlement {
            Settlement::Delivered => ("delivered", Duration::ZERO, None, None, 0),
            Settlement::Again {
                wait,
                in_doubt,
                told,
            } => (status(*in_doubt), *wait, None, Some(told.clone()), 0),
            Settlement::Parked { reason, told } => {
                let reason = Some(reason.as_str());
                ("parked", Duration::ZERO, reason, Some(told.clone()), 0)
            }
            Settlement::Released { in_doubt } => (status(*in_doubt), Duration::ZERO, None, None, 1),
        };
        self.statuses.push(status);
        self.waits
            .push(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        self.reasons.push(reason);
        self.errors.push(error);
        self.given_back.push(given_back);
    }
}
