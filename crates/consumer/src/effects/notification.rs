//! The notification effect: a task for each ticket event, to be told to the outside.

use deadpool_postgres::Transaction;
use event::{EffectName, Event};
use futures_util::future::BoxFuture;
use inbox::{Applicable, Effect, Refusal};
use serde::de::IgnoredAny;
use uuid::Uuid;

use super::{named, ticket};

/// Writes a row of `business_tasks`. The ticket must be there: its foreign key says so.
#[derive(Debug)]
pub struct Notification {
    name: EffectName,
}

impl Default for Notification {
    fn default() -> Self {
        Self {
            name: named("notification"),
        }
    }
}

impl Effect for Notification {
    fn name(&self) -> &EffectName {
        &self.name
    }

    fn event_types(&self) -> &[&'static str] {
        &["ticket.#"]
    }

    fn check(&self, event: &Event) -> Result<(), String> {
        ticket::id_of(event)?;
        let promised = event.content_type.as_str().starts_with("application/json");
        if promised && serde_json::from_slice::<IgnoredAny>(&event.payload).is_err() {
            return Err("its payload is not the JSON that its content type promises".to_owned());
        }
        Ok(())
    }

    fn apply<'a>(
        &'a self,
        transaction: &'a Transaction<'_>,
        events: &'a [Applicable<'a>],
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(write(transaction, events))
    }
}

async fn write(transaction: &Transaction<'_>, events: &[Applicable<'_>]) -> Result<(), Refusal> {
    let mut tickets = Vec::with_capacity(events.len());
    for one in events {
        tickets.push(ticket::id_of(one.event).map_err(Refusal::Never)?);
    }
    let all = || events.iter().map(|one| one.event);
    let tasks: Vec<Uuid> = events.iter().map(|_| Uuid::now_v7()).collect();
    let tenants: Vec<_> = all()
        .map(|event| event.identity.tenant_id.as_str())
        .collect();
    let ids: Vec<_> = all().map(|event| event.identity.event_id).collect();
    let sources: Vec<_> = all().map(|event| event.identity.source.as_str()).collect();
    let types: Vec<_> = all().map(|event| event.event_type.as_str()).collect();
    let payloads: Vec<_> = all().map(|event| event.payload.as_ref()).collect();
    let statement = transaction
        .prepare_cached(include_str!("../sql/notification.sql"))
        .await?;
    transaction
        .execute(
            &statement,
            &[
                &tasks, &tenants, &tickets, &ids, &sources, &types, &payloads,
            ],
        )
        .await?;
    Ok(())
}
