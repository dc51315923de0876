//! `status`: backlog, queues and what waits, at a glance.

use deadpool_postgres::Transaction;
use serde_json::json;

use crate::context::{Context, list};
use crate::failure::Failure;
use crate::listing::Listing;
use crate::report::Report;

pub(crate) async fn run(context: &Context) -> Result<Report, Failure> {
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let backlog = backlog(transaction).await?;
            let queues = list(transaction, include_str!("../sql/status_queues.sql"), &[]).await?;
            let relays = list(transaction, include_str!("../sql/status_relays.sql"), &[]).await?;
            let waiting = list(
                transaction,
                include_str!("../sql/status_deliveries.sql"),
                &[],
            )
            .await?;
            let tasks = list(transaction, include_str!("../sql/status_tasks.sql"), &[]).await?;
            let paused = list(transaction, include_str!("../sql/status_paused.sql"), &[]).await?;
            Ok::<_, Failure>(
                Report::default()
                    .value("schema", schema::SCHEMA_VERSION)
                    .card("backlog", backlog)
                    .table("queues", queues)
                    .table("relays", relays)
                    .table("deliveries", waiting)
                    .table("outside_tasks", tasks)
                    .table("paused_tenants", paused),
            )
        });
    work.await
}

/// The relay's own gauges, under their names.
async fn backlog(transaction: &Transaction<'_>) -> Result<Listing, Failure> {
    let backlog = outbox::backlog(transaction).await?;
    let oldest_due = outbox::oldest_due(transaction, None).await?;
    let text = include_str!("../sql/status_conflicts.sql");
    let conflicts: i64 = transaction.query_one(text, &[]).await?.try_get(0)?;
    Ok(Listing::one([
        ("claimable", json!(backlog.claimable)),
        ("oldest_due_seconds", json!(oldest_due.as_secs_f64())),
        ("delayed", json!(backlog.delayed)),
        ("held", json!(backlog.held)),
        ("held_aggregates", json!(backlog.held_aggregates)),
        ("parked", json!(backlog.parked)),
        ("conflicts", json!(conflicts)),
    ]))
}
