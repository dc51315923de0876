//! `pool`: lists pools, shows what is in one, removes one in which nothing is.

use std::time::Duration;

use broker::{Broker, Look};
use event::{EffectName, PoolName, dead_queue_name, queue_name};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::action::Action;
use crate::broker::{Link, away};
use crate::cli::{Because, Global, PoolCommand};
use crate::context::Context;
use crate::failure::Failure;
use crate::listing::Listing;
use crate::report::Report;

pub(crate) async fn run(
    context: &Context,
    global: &Global,
    command: PoolCommand,
) -> Result<Report, Failure> {
    let (pool, removal) = match command {
        PoolCommand::List => {
            let listing = context.list(include_str!("../sql/pools.sql"), &[]).await?;
            return Ok(Report::listing(listing, "no pools"));
        }
        PoolCommand::Show { pool, idle } => (pool, Err(idle)),
        PoolCommand::Remove {
            pool,
            within,
            because,
        } => (pool, Ok((within, because))),
    };
    let link = Link::open(global).await?;
    let done = match removal {
        Err(idle) => show(context, &link.broker, (&pool, idle)).await,
        Ok((within, because)) => {
            let broker = &link.broker;
            match unused(context, broker, (&pool, within)).await {
                Ok(queues) => remove(context, broker, (&pool, &queues), &because).await,
                Err(failure) => Err(failure),
            }
        }
    };
    link.close().await;
    done
}

const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What is in a pool.
struct Content {
    card: Listing,
    queues: Listing,
    /// What keeps it from being removed, in words.
    uses: Vec<String>,
}

async fn show(
    context: &Context,
    broker: &Broker,
    (pool, idle): (&PoolName, bool),
) -> Result<Report, Failure> {
    let content = look(context, broker, pool).await?;
    let told = match content.uses.as_slice() {
        [] => format!("nothing is in pool {pool}"),
        uses => format!("pool {pool} is in use: {}", uses.join(", ")),
    };
    Ok(Report::default()
        .card("pool", content.card)
        .table("queues", content.queues)
        .value("idle", content.uses.is_empty())
        .line(told)
        .with_problems(idle && !content.uses.is_empty()))
}

async fn look(context: &Context, broker: &Broker, pool: &PoolName) -> Result<Content, Failure> {
    let text = include_str!("../sql/pool_show.sql");
    let card = context.list(text, &[&pool.as_str()]).await?;
    let counted = card.first();
    if counted["effects"] == 0 && counted["tenants"] == 0 {
        let told = format!("there is no pool {pool}; `ticketflow pool list` lists them");
        return Err(Failure::NotFound(told));
    }
    let mut uses = Vec::new();
    for (column, what) in [
        ("tenants", "tenants"),
        ("waiting_deliveries", "deliveries that wait"),
    ] {
        let number = counted[column].as_i64().unwrap_or(0);
        if number > 0 {
            uses.push(format!("{number} {what}"));
        }
    }
    let text = include_str!("../sql/pool_effects.sql");
    let effects = context.list(text, &[&pool.as_str()]).await?;
    let queues = queues(broker, (pool, &effects), &mut uses).await?;
    Ok(Content { card, queues, uses })
}

async fn queues(
    broker: &Broker,
    (pool, effects): (&PoolName, &Listing),
    uses: &mut Vec<String>,
) -> Result<Listing, Failure> {
    let mut listing = Listing {
        columns: ["queue", "messages", "consumers"]
            .map(str::to_owned)
            .to_vec(),
        rows: Vec::new(),
    };
    let mut names = vec![dead_queue_name(pool)];
    for row in &effects.rows {
        let effect = row
            .get("effect")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let effect = EffectName::parse(effect);
        let effect = effect.map_err(|error| Failure::Refused(error.to_string()))?;
        names.push(queue_name(pool, &effect));
    }
    for name in names {
        let Look::Present {
            messages,
            consumers,
        } = broker.look_at(&name).await.map_err(away)?
        else {
            continue;
        };
        if messages > 0 {
            uses.push(format!("{messages} messages in {name}"));
        }
        let row = json!({ "queue": name, "messages": messages, "consumers": consumers });
        listing.rows.extend(row.as_object().cloned());
    }
    Ok(listing)
}

/// The names of the queues of a pool in which nothing is, once that is so. Unacknowledged messages
/// are not counted by the broker's answer, but come back when their consumer goes: so nobody may
/// consume.
async fn unused(
    context: &Context,
    broker: &Broker,
    (pool, within): (&PoolName, Duration),
) -> Result<Vec<String>, Failure> {
    let until = Instant::now() + within;
    loop {
        let content = look(context, broker, pool).await?;
        let mut uses = content.uses;
        let mut names = Vec::new();
        for row in &content.queues.rows {
            let name = row["queue"].as_str().unwrap_or_default().to_owned();
            if row["consumers"] != 0 {
                uses.push(format!("consumers of {name}"));
            }
            names.push(name);
        }
        if uses.is_empty() {
            return Ok(names);
        }
        if Instant::now() >= until {
            let told = format!("pool {pool} is in use: {}", uses.join(", "));
            return Err(Failure::Refused(told));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn remove(
    context: &Context,
    broker: &Broker,
    (pool, names): (&PoolName, &[String]),
    because: &Because,
) -> Result<Report, Failure> {
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let text = include_str!("../sql/pool_remove.sql");
            if transaction.execute(text, &[&pool.as_str()]).await? == 0 {
                return Err(Failure::Refused(format!(
                    "pool {pool} has got a tenant meanwhile"
                )));
            }
            let action = Action {
                name: "pool remove",
                tenant: None,
                target: json!({ "pool": pool.as_str() }),
                because: &because.because,
                result: json!({ "queues": names }),
            };
            context.note(transaction, action).await
        });
    work.await?;
    // After the rows: a relay would make a queue again that has one. The dead queue goes last.
    for name in names.iter().rev() {
        broker.delete_queue(name).await.map_err(away)?;
    }
    let json = json!({ "pool": pool.as_str(), "queues": names });
    Ok(Report::done(
        format!("removed pool {pool} and its queues"),
        json,
    ))
}
