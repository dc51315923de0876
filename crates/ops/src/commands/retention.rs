//! `retention`: partitions made ahead, and removed when all in them is older than its retention.
//!
//! Each step is a short transaction of its own that gives up rather than make others wait, so it
//! may run beside producers, relays, consumers and another one like it.

use std::time::Duration;

use chrono::NaiveDate;
use runtime::backoff::Backoff;
use serde_json::{Value, json};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::action::Action;
use crate::cli::Retention;
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

const OUTBOX: &str = "outbox_events";
const RECEIPTS: &str = "effect_receipts";
/// A lock that is taken elsewhere is waited for in many short tries.
const TRIES: u32 = 50;
const DAY: Duration = Duration::from_secs(86_400);

pub(crate) async fn run(context: &Context, retention: &Retention) -> Result<Report, Failure> {
    check_window(retention)?;
    if retention.dry_run {
        return plan(context, retention).await;
    }
    let made = make(context).await?;
    let (emptied, kept) = empty_outbox(context, retention.outbox_retention).await?;
    let (floor, forgotten) = forget_receipts(context, retention.dedup_window).await?;
    let dropped = drop_shells(context).await?;
    let result = json!({
        "made": made, "emptied": emptied, "kept_since_something_waits": kept,
        "receipts_emptied": forgotten, "dropped": dropped, "floor": floor,
    });
    note(context, retention, &result).await?;
    let told = format!(
        "made {} partitions, emptied {} of the outbox and {} of the receipts, dropped {}",
        made.len(),
        emptied.len(),
        forgotten.len(),
        dropped.len()
    );
    let report = Report::done(told, result);
    Ok(match kept.is_empty() {
        true => report,
        false => report.line(format!(
            "kept, something in them still waits: {}",
            kept.join(", ")
        )),
    })
}

/// A receipt must outlive whatever can still come again.
fn check_window(retention: &Retention) -> Result<(), Failure> {
    let needed = DAY
        + retention.max_delay
        + retention.park_after
        + retention.oldest_redrive
        + retention.max_queue_time;
    if retention.dedup_window > needed {
        return Ok(());
    }
    let shown = humantime::format_duration;
    Err(Failure::Refused(format!(
        "dedup_window {} is too short: an event can come again after {} (a day of skew + max_delay \
         + park_after + oldest_redrive + max_queue_time), and would then be applied twice",
        shown(retention.dedup_window),
        shown(needed)
    )))
}

async fn plan(context: &Context, retention: &Retention) -> Result<Report, Failure> {
    let outbox = retention.outbox_retention.as_secs_f64();
    let receipts = retention.dedup_window.as_secs_f64();
    let values: [&(dyn ToSql + Sync); 2] = [&outbox, &receipts];
    let listing = context
        .list(include_str!("../sql/retention_plan.sql"), &values)
        .await?;
    Ok(Report::listing(listing, "nothing to do"))
}

/// Makes the partitions of the next days, and those of days whose rows are in the default one.
async fn make(context: &Context) -> Result<Vec<String>, Failure> {
    let mut made = Vec::new();
    for (parent, day) in days(context, include_str!("../sql/partitions_missing.sql"), &[]).await? {
        if step(
            context,
            include_str!("../sql/make_partition.sql"),
            &parent,
            day,
        )
        .await?
        {
            made.push(format!("{parent} {day}"));
        }
    }
    Ok(made)
}

async fn empty_outbox(
    context: &Context,
    retention: Duration,
) -> Result<(Vec<String>, Vec<String>), Failure> {
    let (mut emptied, mut kept) = (Vec::new(), Vec::new());
    let text = include_str!("../sql/partitions_old.sql");
    for (parent, day) in days(context, text, &[&OUTBOX, &retention.as_secs_f64()]).await? {
        let name = format!("{parent} {day}");
        if step(
            context,
            include_str!("../sql/truncate_partition.sql"),
            &parent,
            day,
        )
        .await?
        {
            emptied.push(name);
        } else {
            kept.push(name);
        }
    }
    Ok((emptied, kept))
}

/// The floor is raised and committed before anything goes: a delivery that looks at it in between
/// is parked, not applied a second time.
async fn forget_receipts(
    context: &Context,
    window: Duration,
) -> Result<(Uuid, Vec<String>), Failure> {
    let text = include_str!("../sql/floor_raise.sql");
    let raised = context.list(text, &[&window.as_secs_f64()]).await?.first();
    let floor = raised["floor"].as_str().and_then(|text| text.parse().ok());
    let floor: Uuid =
        floor.ok_or_else(|| Failure::NotFound("receipt_floor is empty".to_owned()))?;
    let mut emptied = Vec::new();
    let text = include_str!("../sql/partitions_below.sql");
    for (parent, day) in days(context, text, &[&RECEIPTS, &floor]).await? {
        if step(
            context,
            include_str!("../sql/truncate_partition.sql"),
            &parent,
            day,
        )
        .await?
        {
            emptied.push(format!("{parent} {day}"));
        }
    }
    let statements = [
        include_str!("../sql/receipts_forget_default.sql"),
        include_str!("../sql/floor_truncated.sql"),
    ];
    for text in statements {
        context.list(text, &[&floor]).await?;
    }
    Ok((floor, emptied))
}

async fn drop_shells(context: &Context) -> Result<Vec<String>, Failure> {
    let mut dropped = Vec::new();
    let text = include_str!("../sql/partitions_past.sql");
    for (parent, day) in days(context, text, &[]).await? {
        if step(
            context,
            include_str!("../sql/drop_partition.sql"),
            &parent,
            day,
        )
        .await?
        {
            dropped.push(format!("{parent} {day}"));
        }
    }
    Ok(dropped)
}

async fn days(
    context: &Context,
    text: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<(String, NaiveDate)>, Failure> {
    let rows = context
        .database
        .transaction(context.deadline, async |transaction| {
            Ok::<_, Failure>(transaction.query(text, values).await?)
        });
    let rows = rows.await?;
    let days = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    days.collect::<Result<_, tokio_postgres::Error>>()
        .map_err(Failure::from)
}

/// One call of a partition function, again while a lock is taken elsewhere.
async fn step(
    context: &Context,
    text: &str,
    parent: &str,
    day: NaiveDate,
) -> Result<bool, Failure> {
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
    loop {
        let called = context
            .database
            .transaction(context.deadline, async |transaction| {
                Ok::<bool, Failure>(
                    transaction
                        .query_one(text, &[&parent, &day])
                        .await?
                        .try_get(0)?,
                )
            });
        let failure = match called.await {
            Ok(done) => return Ok(done),
            Err(failure) => failure,
        };
        let again =
            runtime::database::remedy_of(&failure) == Some(runtime::database::Remedy::Again);
        let wait = backoff.next_delay();
        if !again || backoff.attempt() >= TRIES {
            return Err(failure);
        }
        tokio::time::sleep(wait).await;
    }
}

async fn note(context: &Context, retention: &Retention, result: &Value) -> Result<(), Failure> {
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let action = Action {
                name: "retention",
                tenant: None,
                target: json!({
                    "outbox_retention_seconds": retention.outbox_retention.as_secs(),
                    "dedup_window_seconds": retention.dedup_window.as_secs(),
                }),
                because: &retention.because.because,
                result: result.clone(),
            };
            context.note(transaction, action).await
        });
    work.await
}
