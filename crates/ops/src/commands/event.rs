//! `event`: where an event is.

use serde_json::Value;
use uuid::Uuid;

use crate::context::{Context, list};
use crate::failure::Failure;
use crate::listing::Listing;
use crate::report::Report;

pub(crate) async fn run(context: &Context, id: Uuid) -> Result<Report, Failure> {
    let work = context.database.transaction(context.deadline, async |transaction| {
        let events = list(transaction, include_str!("../sql/event.sql"), &[&id]).await?;
        let effects = list(transaction, include_str!("../sql/event_effects.sql"), &[&id]).await?;
        let tasks = list(transaction, include_str!("../sql/event_tasks.sql"), &[&id]).await?;
        let conflicts = list(transaction, include_str!("../sql/event_conflicts.sql"), &[&id]).await?;
        if events.is_empty() && effects.is_empty() && conflicts.is_empty() {
            let told = format!("event {id} is in no table: never recorded here, rolled back, or older than the retention");
            return Err(Failure::NotFound(told));
        }
        let mut report = Report::default();
        for event in split(events) {
            let place = place(&event);
            report = report.line(place.clone()).value("place", place).card("event", event);
        }
        Ok(report
            .table("effects", effects)
            .table("outside_tasks", tasks)
            .table("conflicts", conflicts))
    });
    work.await
}

/// One listing a row: an id may have been used by several tenants or sources.
fn split(listing: Listing) -> impl Iterator<Item = Listing> {
    let columns = listing.columns;
    listing.rows.into_iter().map(move |row| Listing {
        columns: columns.clone(),
        rows: vec![row],
    })
}

/// Where it is, in one sentence.
fn place(event: &Listing) -> String {
    let event = event.first();
    let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or("");
    let held = event.get("held").and_then(Value::as_bool) == Some(true);
    let is_head = event.get("is_head").and_then(Value::as_bool) == Some(true);
    match text("state") {
        "published" => format!(
            "published to pool {} at {}",
            text("pool"),
            text("published_at")
        ),
        "parked" => format!("parked, waits for a person: {}", text("last_error")),
        "skipped" => "skipped: given up by an operator".to_owned(),
        _ if text("tenant_state") == "paused" => "pending: its tenant is paused".to_owned(),
        _ if held && event.get("version").is_none_or(Value::is_null) => {
            format!("pending: delayed until {}", text("available_at"))
        }
        _ if held && is_head => {
            format!(
                "pending: refused, tried again at {}: {}",
                text("hold_until"),
                text("hold_reason")
            )
        }
        _ if held => format!(
            "pending: waits for the head of its aggregate: {}",
            text("hold_reason")
        ),
        _ if !text("leased_by").is_empty() => {
            format!("pending: its lane is leased by {}", text("leased_by"))
        }
        _ => "pending: to be claimed by a relay of its pool".to_owned(),
    }
}
