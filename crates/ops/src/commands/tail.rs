//! `tail`: events as they are recorded.

use std::collections::BTreeSet;
use std::time::Duration;

use event::{EventType, TenantId};
use serde_json::Value;

use crate::cli::Tail;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::report::Report;

const POLL: Duration = Duration::from_millis(300);
/// A transaction that commits later than this after it recorded is not shown. A watermark would
/// also miss shorter ones: rows become visible in the order of commits, not of ids.
const LATE: Duration = Duration::from_secs(20);

/// Prints until interrupted, or once what is there.
pub(crate) async fn run(context: &Context, tail: &Tail, json: bool) -> Result<Report, Failure> {
    let tenant = tail.filter.tenant.as_ref().map(TenantId::as_str);
    let event_type = tail.event_type.as_ref().map(EventType::as_str);
    let mut back = tail.since;
    let mut seen = BTreeSet::new();
    loop {
        let seconds = back.as_secs_f64();
        let listing = context
            .list(
                include_str!("../sql/tail.sql"),
                &[&tenant, &event_type, &seconds],
            )
            .await?;
        let mut present = BTreeSet::new();
        let mut text = String::new();
        for row in listing.rows {
            let row = Value::Object(row);
            let key = ["event_id", "tenant", "source"].map(|name| row[name].to_string());
            if !seen.contains(&key) {
                text.push_str(&line(&row, json));
            }
            present.insert(key);
        }
        let gone = render::say(&text).is_err();
        if tail.once || gone {
            return Ok(Report::silent());
        }
        // What has left the window cannot come again.
        seen = present;
        back = back.max(LATE);
        tokio::time::sleep(POLL).await;
    }
}

fn line(row: &Value, json: bool) -> String {
    if json {
        return format!("{row}\n");
    }
    let text = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
    let version = row["version"]
        .as_i64()
        .map_or_else(|| "-".to_owned(), |v| v.to_string());
    let fields = [
        text("recorded_at"),
        text("tenant"),
        text("event_type"),
        format!(
            "{}/{} v{version}",
            text("aggregate_type"),
            text("aggregate_id")
        ),
        text("event_id"),
        text("state"),
    ];
    format!("{}\n", render::safe(&fields.join("  ")).replace('\n', " "))
}
