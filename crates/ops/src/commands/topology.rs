//! `topology`: the queues that must exist.

use std::time::Duration;

use broker::Look;
use event::PoolName;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use topology::{QueueRow, Standing, Topology};

use crate::action::Action;
use crate::broker::Link;
use crate::cli::{self, Global};
use crate::context::Context;
use crate::failure::Failure;
use crate::listing::Listing;
use crate::report::Report;

/// Somebody else may be at it; how soon to look again.
const AGAIN: Duration = Duration::from_millis(500);

pub(crate) async fn run(
    context: &Context,
    global: &Global,
    command: &cli::Topology,
) -> Result<Report, Failure> {
    let link = Link::open(global).await?;
    let topology = Topology::new(context.database.clone(), link.broker.clone());
    let pools = match command.pool.is_empty() {
        true => topology.pools().await?,
        false => command.pool.clone(),
    };
    let report = match command.check {
        true => look(&topology, &pools).await,
        false => bring_up(context, &topology, &pools, &command.like).await,
    };
    link.close().await;
    report
}

async fn bring_up(
    context: &Context,
    topology: &Topology,
    pools: &[PoolName],
    like: &PoolName,
) -> Result<Report, Failure> {
    for pool in pools {
        topology.add_effects(pool, like).await?;
        verified(topology, pool, Instant::now() + context.deadline).await?;
    }
    let names: Vec<&str> = pools.iter().map(PoolName::as_str).collect();
    let target = json!({ "pools": names });
    let noted = context
        .database
        .transaction(context.deadline, async |transaction| {
            let action = Action {
                name: "topology",
                tenant: None,
                target,
                because: "",
                result: json!({}),
            };
            context.note(transaction, action).await
        });
    noted.await?;
    look(topology, pools).await
}

async fn verified(topology: &Topology, pool: &PoolName, until: Instant) -> Result<(), Failure> {
    loop {
        match topology.check(pool).await? {
            Standing::Verified => return Ok(()),
            Standing::Unverified { reason } if Instant::now() > until => {
                return Err(Failure::Refused(format!("pool {pool}: {reason}")));
            }
            Standing::Unverified { .. } => tokio::time::sleep(AGAIN).await,
        }
    }
}

async fn look(topology: &Topology, pools: &[PoolName]) -> Result<Report, Failure> {
    let mut listing = Listing {
        columns: ["queue", "standing", "messages", "consumers", "generation"]
            .map(str::to_owned)
            .to_vec(),
        rows: Vec::new(),
    };
    let mut problems = pools.is_empty();
    for pool in pools {
        let found = topology.look(pool).await?;
        problems |= found.is_empty();
        for (row, look) in &found {
            let standing = standing(row, *look);
            problems |= standing != READY;
            listing.rows.push(described(row, *look, standing));
        }
    }
    Ok(Report::listing(listing, "no queues").with_problems(problems))
}

const READY: &str = "ready";

fn standing(row: &QueueRow, look: Look) -> &'static str {
    match look {
        Look::Missing => "missing",
        Look::Present { .. } if row.is_ready() => READY,
        Look::Present { .. } => "not refilled yet",
    }
}

fn described(row: &QueueRow, look: Look, standing: &str) -> Map<String, Value> {
    let (messages, consumers) = match look {
        Look::Present {
            messages,
            consumers,
        } => (json!(messages), json!(consumers)),
        Look::Missing => (Value::Null, Value::Null),
    };
    Map::from_iter([
        ("queue".to_owned(), json!(row.queue.name())),
        ("standing".to_owned(), json!(standing)),
        ("messages".to_owned(), messages),
        ("consumers".to_owned(), consumers),
        ("generation".to_owned(), json!(row.generation)),
    ])
}
