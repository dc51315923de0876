//! `skip`: one parked or refused thing is given up.

use deadpool_postgres::Transaction;
use event::TenantId;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::action::Action;
use crate::cli::{ParkedId, Skip};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

/// A copy of it may be on its way.
const NO_RECALL: &str = "a copy that is on its way may still arrive";

pub(crate) async fn run(context: &Context, skip: &Skip) -> Result<Report, Failure> {
    let work = context
        .database
        .transaction(context.deadline, async |transaction| match skip.id {
            ParkedId::Number(delivery) => of_delivery(context, transaction, (skip, delivery)).await,
            ParkedId::Uuid(id) => of_uuid(context, transaction, (skip, id)).await,
        });
    work.await
}

async fn of_delivery(
    context: &Context,
    transaction: &Transaction<'_>,
    (skip, delivery): (&Skip, i64),
) -> Result<Report, Failure> {
    let (done, word) = match inbox::skip(transaction, delivery).await? {
        inbox::Skipped::Done => (
            format!("skipped delivery {delivery}; no copy of it will be applied"),
            "skipped",
        ),
        inbox::Skipped::Dropped => (format!("dropped delivery {delivery}"), "dropped"),
        inbox::Skipped::Missing => {
            return Err(Failure::NotFound(format!(
                "no delivery {delivery} is parked"
            )));
        }
    };
    let target = json!({ "kind": "delivery", "id": delivery });
    finish(context, transaction, skip, (target, done, word)).await
}

async fn of_uuid(
    context: &Context,
    transaction: &Transaction<'_>,
    (skip, id): (&Skip, Uuid),
) -> Result<Report, Failure> {
    let tenant = skip.tenant.as_ref().map(TenantId::as_str);
    let text = include_str!("../sql/skip_candidates.sql");
    let rows = transaction.query(text, &[&id, &tenant]).await?;
    let key = match rows.as_slice() {
        [] => return of_task(context, transaction, (skip, id)).await,
        [row] => outbox::EventKey {
            event_id: id,
            tenant_id: row.try_get("tenant_id")?,
            source: row.try_get("source")?,
        },
        _ => {
            let told = format!("several tenants or sources have an event {id}: say --tenant");
            return Err(Failure::Refused(told));
        }
    };
    match outbox::skip(transaction, &key).await? {
        outbox::Skipped::Done => {}
        outbox::Skipped::Missing => {
            return Err(Failure::NotFound(format!("there is no event {id}")));
        }
        outbox::Skipped::NotWaiting { state } => {
            let told = format!(
                "event {id} is {state}, neither parked nor refused: `ticketflow event {id}` says where it is"
            );
            return Err(Failure::Refused(told));
        }
    }
    let target = json!({ "kind": "event", "id": id, "source": key.source });
    let done = format!(
        "skipped event {id} of tenant {}; {NO_RECALL}",
        key.tenant_id
    );
    finish(context, transaction, skip, (target, done, "skipped")).await
}

async fn of_task(
    context: &Context,
    transaction: &Transaction<'_>,
    (skip, id): (&Skip, Uuid),
) -> Result<Report, Failure> {
    let which = outside::operate::Which {
        tenant_id: skip.tenant.as_ref().map(ToString::to_string),
        task_ids: Some(vec![id]),
        most: 2,
        ..outside::operate::Which::default()
    };
    let action = outside::operate::Action {
        actor: context.actor.clone(),
        reason: skip.because.clone(),
    };
    if outside::operate::skip(transaction, &which, &action)
        .await?
        .is_empty()
    {
        return Err(Failure::NotFound(format!(
            "no event {id} is there, and no task {id} is parked"
        )));
    }
    let json = json!({ "kind": "task", "id": id, "result": "skipped" });
    Ok(Report::done(
        format!("skipped task {id}; {NO_RECALL}"),
        json,
    ))
}

async fn finish(
    context: &Context,
    transaction: &Transaction<'_>,
    skip: &Skip,
    (mut target, done, word): (Value, String, &str),
) -> Result<Report, Failure> {
    let action = Action {
        name: "skip",
        tenant: skip.tenant.as_ref(),
        target: target.clone(),
        because: &skip.because,
        result: json!({ "result": word }),
    };
    context.note(transaction, action).await?;
    target["result"] = word.into();
    Ok(Report::done(done, target))
}
