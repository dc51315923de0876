//! The steps that make a queue; see the crate's documentation for why each is needed.

use std::time::Duration;

use broker::Broker;
use runtime::database::Database;

use crate::error::TopologyError;
use crate::pools::QueueRow;
use crate::statement;

/// For how long a step counts as work in progress, by the database's clock. Longer than any step.
pub const AT_WORK: Duration = Duration::from_secs(15);

/// The most time for declaring under the row's lock: settles of the pool wait for that lock.
const DECLARE: Duration = Duration::from_secs(5);

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Done,
    /// Somebody else has gone on since: it is theirs now.
    Superseded,
}

/// Step 1: raises the generation, unless somebody else has.
pub(crate) async fn raise(
    database: &Database,
    row: &QueueRow,
) -> Result<Option<QueueRow>, TopologyError> {
    let (pool, effect) = names(row);
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&pool, &effect, &row.generation];
    let raised = statement::alone(database, include_str!("sql/raise.sql"), &values).await?;
    let Some(raised) = raised.first() else {
        return Ok(None);
    };
    Ok(Some(QueueRow {
        generation: raised.try_get("generation")?,
        ..row.clone()
    }))
}

/// Step 2: declares and binds under the row's lock.
pub(crate) async fn declare(
    database: &Database,
    broker: &Broker,
    row: &QueueRow,
) -> Result<Step, TopologyError> {
    let (pool, effect) = names(row);
    database
        .transaction(DECLARE, async |transaction| {
            let lock = include_str!("sql/lock.sql");
            let locked = statement::rows(transaction, lock, &[&pool, &effect]).await?;
            let generation: Option<i64> = locked
                .first()
                .map(|row| row.try_get("generation"))
                .transpose()?;
            if generation != Some(row.generation) {
                return Ok(Step::Superseded);
            }
            broker.declare_effect_queue(&row.queue).await?;
            let done = include_str!("sql/declared.sql");
            statement::rows(transaction, done, &[&pool, &effect]).await?;
            Ok(Step::Done)
        })
        .await
}

/// Takes on the refilling of a declared queue, if nobody is at it.
pub(crate) async fn take_on(database: &Database, row: &QueueRow) -> Result<Step, TopologyError> {
    let text = include_str!("sql/take_on.sql");
    advance(database, text, row, &AT_WORK.as_secs_f64()).await
}

/// Says that the refilling goes on.
pub(crate) async fn go_on(database: &Database, row: &QueueRow) -> Result<Step, TopologyError> {
    let text = include_str!("sql/take_on.sql");
    advance(database, text, row, &0.0).await
}

/// Takes on the search for lost messages of a ready queue, if nobody did it lately.
pub(crate) async fn take_lost(
    database: &Database,
    row: &QueueRow,
    every: Duration,
) -> Result<Step, TopologyError> {
    let text = include_str!("sql/take_lost.sql");
    advance(database, text, row, &every.as_secs_f64()).await
}

/// Step 3, its end: the queue has what it had missed.
pub(crate) async fn ready(database: &Database, row: &QueueRow) -> Result<Step, TopologyError> {
    let (pool, effect) = names(row);
    let text = include_str!("sql/ready.sql");
    let done = statement::alone(database, text, &[&pool, &effect, &row.generation]).await?;
    Ok(step(&done))
}

async fn advance(
    database: &Database,
    text: &str,
    row: &QueueRow,
    idle_for: &f64,
) -> Result<Step, TopologyError> {
    let (pool, effect) = names(row);
    let done =
        statement::alone(database, text, &[&pool, &effect, &row.generation, idle_for]).await?;
    Ok(step(&done))
}

fn step(changed: &[tokio_postgres::Row]) -> Step {
    match changed {
        [] => Step::Superseded,
        [_, ..] => Step::Done,
    }
}

fn names(row: &QueueRow) -> (&str, &str) {
    (row.queue.pool.as_str(), row.queue.effect.as_str())
}
