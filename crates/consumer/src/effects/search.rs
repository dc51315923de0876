//! The search effect: the newest version of each ticket as a searchable document.

use std::collections::BTreeMap;

use deadpool_postgres::Transaction;
use event::{EffectName, Event};
use futures_util::future::BoxFuture;
use inbox::{Applicable, Effect, Refusal, mutant};
use uuid::Uuid;

use super::named;
use super::ticket::{self, Ticket};

/// Writes a row of `search_documents`, and never an older version over a newer one.
#[derive(Debug)]
pub struct Search {
    name: EffectName,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            name: named("search"),
        }
    }
}

impl Effect for Search {
    fn name(&self) -> &EffectName {
        &self.name
    }

    fn event_types(&self) -> &[&'static str] {
        &["ticket.#"]
    }

    fn check(&self, event: &Event) -> Result<(), String> {
        ticket::read(event).map(drop)
    }

    fn apply<'a>(
        &'a self,
        transaction: &'a Transaction<'_>,
        events: &'a [Applicable<'a>],
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            let documents = newest(events).map_err(Refusal::Never)?;
            write(transaction, &documents).await
        })
    }
}

type Documents<'a> = BTreeMap<(&'a str, Uuid), Ticket<'a>>;

/// The highest version of each ticket, in the order of the rows' keys: one upsert cannot write a
/// row twice, and rows written in another order could deadlock with another consumer's.
fn newest<'a>(events: &'a [Applicable<'a>]) -> Result<Documents<'a>, String> {
    let mut documents = Documents::new();
    for one in events {
        let ticket = ticket::read(one.event)?;
        let key = (ticket.tenant(one.event), ticket::id_of(one.event)?);
        let older = documents
            .get(&key)
            .is_some_and(|other| other.version >= ticket.version);
        if !older {
            documents.insert(key, ticket);
        }
    }
    Ok(documents)
}

async fn write(transaction: &Transaction<'_>, documents: &Documents<'_>) -> Result<(), Refusal> {
    let keys = || documents.keys();
    let all = || documents.values();
    let tenants: Vec<_> = keys().map(|(tenant, _)| *tenant).collect();
    let ids: Vec<_> = keys().map(|(_, id)| *id).collect();
    let versions: Vec<_> = all().map(|ticket| ticket.version).collect();
    let subjects: Vec<_> = all().map(|ticket| ticket.subject.as_ref()).collect();
    let bodies: Vec<_> = all().map(|ticket| ticket.body.as_ref()).collect();
    let states: Vec<_> = all().map(|ticket| ticket.status.as_ref()).collect();
    let priorities: Vec<_> = all().map(|ticket| ticket.priority.as_ref()).collect();
    let assignees: Vec<_> = all().map(|ticket| ticket.assignee.as_deref()).collect();
    let updated: Vec<_> = all().map(|ticket| ticket.updated_at).collect();
    let (text, newer) = (
        include_str!("../sql/search.sql"),
        "document.version < excluded.version",
    );
    let text = mutant::bent(mutant::SEARCH_GOES_BACK, text, newer, "true");
    let statement = transaction.prepare_cached(&text).await?;
    transaction
        .execute(
            &statement,
            &[
                &tenants,
                &ids,
                &versions,
                &subjects,
                &bodies,
                &states,
                &priorities,
                &assignees,
                &updated,
            ],
        )
        .await?;
    Ok(())
}
