//! What `doctor` finds at the broker, if it is told where that is.

use broker::Look;
use event::{EffectName, PoolName, dead_queue_name, queue_name};
use serde_json::{Map, Value, json};

use crate::broker::{Link, away};
use crate::cli::Global;
use crate::context::Context;
use crate::failure::Failure;

/// Queues that are missing, full of dead letters, or that nobody consumes.
pub(super) async fn findings(
    context: &Context,
    global: &Global,
) -> Result<Vec<Map<String, Value>>, Failure> {
    if global.amqp_url.is_none() && global.amqp_url_file.is_none() {
        let told = "the broker was not looked at";
        return Ok(finding("note", told.to_owned(), "set AMQP_URL")
            .into_iter()
            .collect());
    }
    let link = match Link::open(global).await {
        Ok(link) => link,
        Err(failure) => {
            let row = finding(
                "problem",
                failure.to_string(),
                "start RabbitMQ, or correct AMQP_URL",
            );
            return Ok(row.into_iter().collect());
        }
    };
    let found = look(context, &link).await;
    link.close().await;
    found
}

async fn look(context: &Context, link: &Link) -> Result<Vec<Map<String, Value>>, Failure> {
    let effects = context
        .list(include_str!("../sql/effects.sql"), &[])
        .await?;
    let mut found = Vec::new();
    let mut before = None;
    for row in &effects.rows {
        let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        let (Ok(pool), Ok(effect)) = (
            PoolName::parse(text("pool")),
            EffectName::parse(text("effect")),
        ) else {
            continue;
        };
        if before.as_ref() != Some(&pool) {
            found.extend(dead(link, &pool).await?);
        }
        let paused = row.get("paused") == Some(&Value::Bool(true));
        found.extend(queue(link, (&pool, &effect), paused).await?);
        before = Some(pool);
    }
    Ok(found)
}

async fn queue(
    link: &Link,
    (pool, effect): (&PoolName, &EffectName),
    paused: bool,
) -> Result<Option<Map<String, Value>>, Failure> {
    let name = queue_name(pool, effect);
    Ok(match link.broker.look_at(&name).await.map_err(away)? {
        Look::Missing => {
            let remedy = format!("run `ticketflow topology --pool {pool}`");
            finding("problem", format!("queue {name} is missing"), &remedy)
        }
        Look::Present {
            messages,
            consumers: 0,
        } if !paused => {
            let told = format!("nobody consumes {name}, {messages} messages wait in it");
            finding(
                "warning",
                told,
                &format!("start one: `consumer --pool {pool}`"),
            )
        }
        Look::Present { .. } => None,
    })
}

async fn dead(link: &Link, pool: &PoolName) -> Result<Option<Map<String, Value>>, Failure> {
    let name = dead_queue_name(pool);
    Ok(match link.broker.look_at(&name).await.map_err(away)? {
        Look::Missing => {
            let remedy = format!("run `ticketflow topology --pool {pool}`");
            let told =
                format!("queue {name} is missing: dead letters are kept where nobody sees them");
            finding("problem", told, &remedy)
        }
        Look::Present { messages: 0, .. } => None,
        Look::Present { messages, .. } => {
            let told = format!("{messages} dead letters wait in {name}");
            finding(
                "warning",
                told,
                &format!("start a consumer, which takes them in: `consumer --pool {pool}`"),
            )
        }
    })
}

fn finding(severity: &str, finding: String, remedy: &str) -> Option<Map<String, Value>> {
    json!({ "severity": severity, "finding": finding, "remedy": remedy })
        .as_object()
        .cloned()
}
