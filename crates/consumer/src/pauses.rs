//! Which effects are paused, read from `effect_queues` again and again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use runtime::database::{Database, DatabaseError, Transaction};
use tokio::sync::watch;

use crate::shared::Shared;

const EVERY: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(5);

/// Pools and effects whose queues are left alone.
pub(crate) type Paused = HashSet<(String, String)>;

/// Reads them for as long as the process runs. While the database is away nothing changes.
pub(crate) async fn watch(shared: Arc<Shared>, sender: watch::Sender<Paused>) {
    loop {
        if let Ok(paused) = read(&shared.database).await {
            sender.send_if_modified(|known| {
                let changed = *known != paused;
                *known = paused;
                changed
            });
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = shared.stop.cancelled() => return,
        }
    }
}

/// What is paused now. Boxed, since the compiler cannot see through a transaction's closure that
/// the future may change threads.
pub(crate) fn read(database: &Database) -> BoxFuture<'_, Result<Paused, DatabaseError>> {
    Box::pin(
        database.transaction(DEADLINE, async |transaction: &Transaction<'_>| {
            let statement = transaction
                .prepare_cached(include_str!("sql/paused.sql"))
                .await?;
            let rows = transaction.query(&statement, &[]).await?;
            let pairs = rows
                .iter()
                .map(|row| Ok((row.try_get("pool")?, row.try_get("effect")?)));
            Ok(pairs.collect::<Result<_, tokio_postgres::Error>>()?)
        }),
    )
}
