//! `tenant move`: to another pool, while events are recorded, published and applied.
//!
//! The new pool's queues must be ready and consumed. Then all lanes are leased, so that no relay
//! has a claim for the old pool, the pool is changed, and the lanes are given back. What waits in
//! the old queues is applied from there, and effects that keep order wait for it.

use std::time::Duration;

use event::{EffectName, PoolName, TenantId, queue_name};
use outbox::LeaseToken;
use serde_json::json;
use tokio::time::Instant;

use super::tenant::unknown;
use crate::action::Action;
use crate::broker::Link;
use crate::cli::{Global, Move};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

/// Long enough for a lease to be renewed many times while relays give theirs back.
const LEASE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(5);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

pub(crate) async fn run(
    context: &Context,
    global: &Global,
    wanted: &Move,
) -> Result<Report, Failure> {
    let (tenant, pool) = (&wanted.tenant, &wanted.pool);
    let from = pool_of(context, tenant).await?;
    if from == pool.as_str() {
        let json =
            json!({ "tenant": tenant.as_str(), "from": from, "to": pool.as_str(), "moved": false });
        return Ok(Report::done(
            format!("tenant {tenant} is in pool {pool} already"),
            json,
        ));
    }
    let effects = ready_effects(context, pool).await?;
    if !wanted.without_consumers {
        check_consumers(global, wanted, &effects).await?;
    }
    let started = Instant::now();
    let token = LeaseToken::fresh();
    let moved = hand_over(context, wanted, (&from, token)).await;
    if moved.is_err() {
        let given_back = context
            .database
            .transaction(context.deadline, async |transaction| {
                outbox::give_back_tenant(transaction, tenant, token)
                    .await
                    .map_err(Failure::from)
            });
        // If this fails too, the lease ends by itself.
        let _ = given_back.await;
    }
    moved?;
    let waited = started.elapsed().as_secs_f64();
    let json = json!({
        "tenant": tenant.as_str(), "from": from, "to": pool.as_str(), "moved": true, "seconds": waited,
    });
    let told = format!(
        "moved tenant {tenant} from pool {from} to {pool}; what waits in the queues of {from} is applied from there"
    );
    Ok(Report::done(told, json))
}

async fn pool_of(context: &Context, tenant: &TenantId) -> Result<String, Failure> {
    let text = include_str!("../sql/tenant_pool.sql");
    let listing = context.list(text, &[&tenant.as_str()]).await?;
    let pool = listing.first()["pool"].as_str().map(str::to_owned);
    pool.ok_or_else(|| unknown(tenant))
}

/// The effects of the new pool, all of them ready: a pool that is not would not be published to.
async fn ready_effects(context: &Context, pool: &PoolName) -> Result<Vec<EffectName>, Failure> {
    let text = include_str!("../sql/pool_effects.sql");
    let listing = context.list(text, &[&pool.as_str()]).await?;
    if listing.is_empty() {
        let told =
            format!("pool {pool} has no effects: `ticketflow topology --pool {pool}` makes it");
        return Err(Failure::NotFound(told));
    }
    let mut effects = Vec::new();
    for row in &listing.rows {
        let name = row["effect"].as_str().unwrap_or_default();
        if row["ready"] != true {
            let told = format!(
                "queue ticketflow.{pool}.{name} is not ready: `ticketflow topology --pool {pool}` declares it"
            );
            return Err(Failure::Refused(told));
        }
        effects.push(EffectName::parse(name).map_err(|error| Failure::Refused(error.to_string()))?);
    }
    Ok(effects)
}

/// Waits for a consumer on each queue: the broker's count of them follows after some seconds.
async fn check_consumers(
    global: &Global,
    wanted: &Move,
    effects: &[EffectName],
) -> Result<(), Failure> {
    let pool = &wanted.pool;
    let link = Link::open(global).await?;
    let until = Instant::now() + wanted.within;
    for effect in effects {
        let queue = queue_name(pool, effect);
        while link.consumers(&queue).await? == 0 {
            if Instant::now() >= until {
                link.close().await;
                return Err(Failure::Refused(format!(
                    "nobody consumes {queue}: start a consumer with --pool {pool}, or say \
                     --without-consumers"
                )));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
    link.close().await;
    Ok(())
}

async fn hand_over(
    context: &Context,
    wanted: &Move,
    (from, token): (&str, LeaseToken),
) -> Result<(), Failure> {
    let (tenant, pool) = (&wanted.tenant, &wanted.pool);
    let until = Instant::now() + wanted.within;
    let me = format!("ticketflow tenant move, by {}", context.actor);
    loop {
        let leased = context
            .database
            .transaction(context.deadline, async |transaction| {
                outbox::lease_tenant(transaction, tenant, (token, &me), LEASE)
                    .await
                    .map_err(Failure::from)
            });
        if leased.await? {
            break;
        }
        if Instant::now() >= until {
            let told = format!(
                "the lanes of tenant {tenant} did not become free within {:?}; `ticketflow lanes --tenant {tenant}` shows who has them",
                wanted.within
            );
            return Err(Failure::Refused(told));
        }
        tokio::time::sleep(POLL).await;
    }
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            if !outbox::move_tenant(transaction, tenant, token, pool).await? {
                let told = "a lease ran out before the pool was changed: try again";
                return Err(Failure::Refused(told.to_owned()));
            }
            let action = Action {
                name: "tenant move",
                tenant: Some(tenant),
                target: json!({ "pool": pool.as_str() }),
                because: &wanted.because.because,
                result: json!({ "before": from }),
            };
            context.note(transaction, action).await
        });
    work.await
}
