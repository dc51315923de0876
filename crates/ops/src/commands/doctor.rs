//! `doctor`: what is wrong, and what to do about it. One statement a check; each row is a finding.

use serde_json::{Value, json};
use tokio_postgres::types::ToSql;

use crate::action::Action;
use crate::cli::{Doctor, Global};
use crate::context::Context;
use crate::failure::Failure;
use crate::listing::Listing;
use crate::report::Report;

/// Each gives rows of severity (problem, warning, note), finding and what to do.
const CHECKS: &[&str] = &[
    include_str!("../sql/doctor_held.sql"),
    include_str!("../sql/doctor_holds.sql"),
    include_str!("../sql/doctor_partitions.sql"),
    include_str!("../sql/doctor_queues.sql"),
    include_str!("../sql/doctor_lanes.sql"),
    include_str!("../sql/doctor_deliveries.sql"),
    include_str!("../sql/doctor_receipts.sql"),
    include_str!("../sql/doctor_server.sql"),
    include_str!("../sql/doctor_tenants.sql"),
];

pub(crate) async fn run(
    context: &Context,
    global: &Global,
    doctor: &Doctor,
) -> Result<Report, Failure> {
    if doctor.repair {
        repair(context, doctor).await?;
    }
    let age = doctor.due_age.as_secs_f64();
    let due = include_str!("../sql/doctor_due.sql");
    let values: [&(dyn ToSql + Sync); 1] = [&age];
    let mut found = context.list(due, &values).await?;
    for check in CHECKS {
        found.rows.append(&mut context.list(check, &[]).await?.rows);
    }
    found
        .rows
        .append(&mut super::doctor_broker::findings(context, global).await?);
    let problems = count(&found, "problem");
    let counted = ["problem", "warning", "note"].map(|severity| {
        let number = count(&found, severity);
        let plural = if number == 1 { "" } else { "s" };
        format!("{number} {severity}{plural}")
    });
    let told = match found.rows.len() {
        0 => "nothing found".to_owned(),
        _ => format!("found {}", counted.join(", ")),
    };
    let report = Report::default().value("problems", problems);
    Ok(report
        .table("findings", found)
        .line(told)
        .with_problems(problems > 0))
}

async fn repair(context: &Context, doctor: &Doctor) -> Result<(), Failure> {
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let repaired = outbox::repair_holds(transaction).await?;
            if repaired == 0 {
                return Ok(());
            }
            let action = Action {
                name: "doctor repair",
                tenant: None,
                target: json!({}),
                because: &doctor.because.because,
                result: json!({ "holds": repaired }),
            };
            context.note(transaction, action).await
        });
    work.await
}

fn count(found: &Listing, severity: &str) -> usize {
    let is_one = |row: &&serde_json::Map<String, Value>| {
        row.get("severity").and_then(Value::as_str) == Some(severity)
    };
    found.rows.iter().filter(is_one).count()
}
