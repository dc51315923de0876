//! `tenant`: add, list, show, pause, resume.

use event::TenantId;
use serde_json::json;

use crate::action::Action;
use crate::cli::{AddTenant, Because, Global, TenantCommand};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

pub(crate) async fn run(
    context: &Context,
    global: &Global,
    command: TenantCommand,
) -> Result<Report, Failure> {
    match command {
        TenantCommand::Key(key) => super::key::run(context, &key).await,
        TenantCommand::Move(moved) => super::move_tenant::run(context, global, &moved).await,
        TenantCommand::Add(new) => add(context, &new).await,
        TenantCommand::List => {
            let listing = context
                .list(include_str!("../sql/tenants.sql"), &[])
                .await?;
            Ok(Report::listing(listing, "no tenants"))
        }
        TenantCommand::Show { tenant } => show(context, &tenant).await,
        TenantCommand::Pause { tenant, because } => {
            set_state(context, &tenant, ("tenant pause", "paused"), &because).await
        }
        TenantCommand::Resume { tenant, because } => {
            set_state(context, &tenant, ("tenant resume", "active"), &because).await
        }
    }
}

/// That of a tenant nobody has added.
pub(super) fn unknown(tenant: &TenantId) -> Failure {
    Failure::NotFound(format!(
        "there is no tenant {tenant}; `ticketflow tenant list` lists them"
    ))
}

async fn add(context: &Context, new: &AddTenant) -> Result<Report, Failure> {
    let (tenant, pool) = (new.tenant.as_str(), new.pool.as_str());
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let inserted = transaction
                .query_opt(
                    include_str!("../sql/tenant_add.sql"),
                    &[&tenant, &pool, &new.rate, &new.burst],
                )
                .await?;
            if inserted.is_none() {
                return already(transaction, new).await;
            }
            let queues = transaction
                .execute(include_str!("../sql/pool_add_effects.sql"), &[&pool])
                .await?;
            let action = Action {
                name: "tenant add",
                tenant: Some(&new.tenant),
                target: json!({ "pool": pool, "rate": new.rate, "burst": new.burst }),
                because: &new.because.because,
                result: json!({ "queues_added": queues }),
            };
            context.note(transaction, action).await?;
            let hint = match queues {
                0 => String::new(),
                _ => format!(
                    "; pool {pool} is new: `ticketflow topology --pool {pool}` declares its queues"
                ),
            };
            let json =
                json!({ "tenant": tenant, "pool": pool, "added": true, "new_pool": queues > 0 });
            Ok(Report::done(
                format!("added tenant {tenant} in pool {pool}{hint}"),
                json,
            ))
        });
    work.await
}

async fn already(
    transaction: &deadpool_postgres::Transaction<'_>,
    new: &AddTenant,
) -> Result<Report, Failure> {
    let text = include_str!("../sql/tenant_pool.sql");
    let row = transaction.query_one(text, &[&new.tenant.as_str()]).await?;
    let pool: String = row.try_get(0)?;
    let tenant = &new.tenant;
    if new.if_missing && pool == new.pool.as_str() {
        let json =
            json!({ "tenant": tenant.as_str(), "pool": pool, "added": false, "new_pool": false });
        return Ok(Report::done(
            format!("tenant {tenant} is there already"),
            json,
        ));
    }
    Err(Failure::Refused(format!(
        "tenant {tenant} is there already, in pool {pool}"
    )))
}

async fn show(context: &Context, tenant: &TenantId) -> Result<Report, Failure> {
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&tenant.as_str()];
    let card = context
        .list(include_str!("../sql/tenant_show.sql"), &values)
        .await?;
    if card.is_empty() {
        return Err(unknown(tenant));
    }
    let keys = context
        .list(include_str!("../sql/keys.sql"), &values)
        .await?;
    let lanes = context
        .list(
            include_str!("../sql/lanes.sql"),
            &[&Some(tenant.as_str()), &false],
        )
        .await?;
    Ok(Report::default()
        .card("tenant", card)
        .table("keys", keys)
        .table("lanes", lanes))
}

async fn set_state(
    context: &Context,
    tenant: &TenantId,
    (name, state): (&str, &str),
    because: &Because,
) -> Result<Report, Failure> {
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let text = include_str!("../sql/tenant_set_state.sql");
            let row = transaction
                .query_opt(text, &[&tenant.as_str(), &state])
                .await?;
            let before: String = row.ok_or_else(|| unknown(tenant))?.try_get(0)?;
            let action = Action {
                name,
                tenant: Some(tenant),
                target: json!({ "state": state }),
                because: &because.because,
                result: json!({ "before": before }),
            };
            context.note(transaction, action).await?;
            let was = if before == state { "already " } else { "" };
            let json = json!({ "tenant": tenant.as_str(), "state": state, "before": before });
            Ok(Report::done(
                format!("tenant {tenant} is {was}{state}"),
                json,
            ))
        });
    work.await
}
