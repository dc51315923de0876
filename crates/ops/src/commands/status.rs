//! `status`: backlog, queues and what waits, at a glance.

use crate::context::{Context, list};
use crate::failure::Failure;
use crate::report::Report;

pub(crate) async fn run(context: &Context) -> Result<Report, Failure> {
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let backlog = list(transaction, include_str!("../sql/backlog.sql"), &[]).await?;
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
