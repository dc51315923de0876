//! `replay`: published events of a time to one effect's queue again, with their ids.

use chrono::Utc;
use event::TenantId;
use serde_json::json;
use topology::Topology;

use crate::action::Action;
use crate::broker::Link;
use crate::cli::{Global, Replay};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

pub(crate) async fn run(
    context: &Context,
    global: &Global,
    wanted: &Replay,
) -> Result<Report, Failure> {
    let link = Link::open(global).await?;
    let topology = Topology::new(context.database.clone(), link.broker.clone());
    let replayed = with_topology(context, &topology, wanted).await;
    drop(topology);
    link.close().await;
    replayed
}

async fn with_topology(
    context: &Context,
    topology: &Topology,
    wanted: &Replay,
) -> Result<Report, Failure> {
    let (pool, effect) = (&wanted.pool, &wanted.effect);
    let range = topology::Replay {
        from: wanted.from,
        to: wanted.to.unwrap_or_else(Utc::now),
        tenant: wanted.tenant.clone(),
        missing: wanted.missing,
    };
    let nobody = || Failure::NotFound(format!("pool {pool} has no effect {effect}"));
    let target = json!({
        "pool": pool.as_str(), "effect": effect.as_str(), "from": range.from, "to": range.to,
        "tenant": range.tenant.as_ref().map(TenantId::as_str), "missing": range.missing,
    });
    if wanted.dry_run {
        let count = topology.count_replay((pool, effect), &range).await?;
        let events = count.ok_or_else(nobody)?;
        let json = json!({ "events": events, "dry_run": true });
        return Ok(Report::done(format!("would send {events} events"), json));
    }
    let sent = topology.replay((pool, effect), &range).await?;
    let events = sent.ok_or_else(nobody)?;
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let action = Action {
                name: "replay",
                tenant: wanted.tenant.as_ref(),
                target: target.clone(),
                because: &wanted.because.because,
                result: json!({ "events": events }),
            };
            context.note(transaction, action).await
        });
    work.await?;
    let json = json!({ "events": events, "dry_run": false });
    let told = format!("sent {events} events to ticketflow.{pool}.{effect} again");
    Ok(Report::done(told, json))
}
