//! `effect`: list, add, pause, resume.

use event::{EffectName, PoolName};
use serde_json::json;

use crate::action::Action;
use crate::cli::{Because, EffectCommand, EffectOfPool};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

pub(crate) async fn run(context: &Context, command: EffectCommand) -> Result<Report, Failure> {
    match command {
        EffectCommand::List => {
            let listing = context
                .list(include_str!("../sql/effects.sql"), &[])
                .await?;
            Ok(Report::listing(listing, "no effects"))
        }
        EffectCommand::Add {
            effect,
            pool,
            types,
            because,
        } => add(context, (&effect, &pool), &types, &because).await,
        EffectCommand::Pause(which) => set_paused(context, &which, true).await,
        EffectCommand::Resume(which) => set_paused(context, &which, false).await,
    }
}

async fn add(
    context: &Context,
    (effect, pool): (&EffectName, &PoolName),
    types: &[String],
    because: &Because,
) -> Result<Report, Failure> {
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let text = include_str!("../sql/effect_add.sql");
            let added = transaction
                .execute(text, &[&pool.as_str(), &effect.as_str(), &types])
                .await?;
            if added == 0 {
                return Err(Failure::Refused(format!(
                    "pool {pool} has effect {effect} already"
                )));
            }
            let target =
                json!({ "pool": pool.as_str(), "effect": effect.as_str(), "event_types": types });
            let action = Action {
                name: "effect add",
                tenant: None,
                target: target.clone(),
                because: &because.because,
                result: json!({}),
            };
            context.note(transaction, action).await?;
            let next =
                format!("`ticketflow topology --pool {pool}` declares its queue; until then");
            let told =
                format!("added effect {effect} to pool {pool}; {next} the pool's relays wait");
            Ok(Report::done(told, target))
        });
    work.await
}

async fn set_paused(
    context: &Context,
    which: &EffectOfPool,
    paused: bool,
) -> Result<Report, Failure> {
    let effect = &which.effect;
    let pool = which.pool.as_ref().map(PoolName::as_str);
    let name = if paused {
        "effect pause"
    } else {
        "effect resume"
    };
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let text = include_str!("../sql/effect_set_paused.sql");
            let rows = transaction
                .query(text, &[&pool, &effect.as_str(), &paused])
                .await?;
            let pools: Vec<String> = rows
                .iter()
                .map(|row| row.try_get(0))
                .collect::<Result<_, _>>()?;
            if pools.is_empty() {
                let place = pool.map_or_else(
                    || "no pool has".to_owned(),
                    |pool| format!("pool {pool} does not have"),
                );
                return Err(Failure::NotFound(format!("{place} effect {effect}")));
            }
            let json = json!({ "effect": effect.as_str(), "pools": pools, "paused": paused });
            let action = Action {
                name,
                tenant: None,
                target: json.clone(),
                because: &which.because.because,
                result: json!({}),
            };
            context.note(transaction, action).await?;
            let is = if paused { "paused" } else { "resumed" };
            let told = format!("effect {effect} is {is} in pool {}", pools.join(", "));
            Ok(Report::done(told, json))
        });
    work.await
}
