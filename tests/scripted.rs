//! An effect that does what a test tells it to, one event at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deadpool_postgres::Transaction;
use event::{EffectName, Event};
use futures_util::future::BoxFuture;
use inbox::{Applicable, Effect, Place, Refusal};
use uuid::Uuid;

/// The table it writes.
pub(crate) const TABLE: &str = "
  create table public.effects (
    entry bigint generated always as identity primary key,
    event_id uuid not null, tenant text not null, aggregate text not null, version bigint,
    late boolean not null, body bytea not null);
  grant select, insert on public.effects to ticketflow_consumer";

/// What it does with an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Do {
    /// Writes its row.
    Write,
    /// Takes its time, then writes its row.
    WriteAfter(Duration),
    /// Fails before it writes.
    FailBefore,
    /// Fails after it has written.
    FailAfter,
    /// Never comes back.
    Hang,
    /// Panics.
    Panic,
    /// Runs a statement instead, whatever the server says to it.
    Run(&'static str),
}

/// An effect under a script.
pub(crate) struct Scripted {
    name: EffectName,
    orders: Mutex<HashMap<Uuid, Do>>,
    tried: Mutex<HashMap<Uuid, u32>>,
}

impl Scripted {
    /// In the queue of the effect of this name.
    pub(crate) fn new(name: &str) -> Arc<Self> {
        Arc::new(Self {
            name: EffectName::parse(name).unwrap(),
            orders: Mutex::default(),
            tried: Mutex::default(),
        })
    }

    /// From now on it does this with the event.
    pub(crate) fn with_event(&self, event: &Event, what: Do) {
        self.orders
            .lock()
            .unwrap()
            .insert(event.identity.event_id, what);
    }

    /// How often it was asked to apply the event.
    pub(crate) fn tried(&self, event: &Event) -> u32 {
        let tried = self.tried.lock().unwrap();
        tried.get(&event.identity.event_id).copied().unwrap_or(0)
    }

    /// Waits until it was asked to apply the event.
    pub(crate) async fn until_tried(&self, event: &Event) {
        let deadline = tokio::time::Instant::now() + crate::consuming::PATIENCE;
        while self.tried(event) == 0 {
            assert!(tokio::time::Instant::now() < deadline, "never tried");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn order(&self, event: &Event) -> Do {
        let id = event.identity.event_id;
        *self.tried.lock().unwrap().entry(id).or_default() += 1;
        self.orders
            .lock()
            .unwrap()
            .get(&id)
            .cloned()
            .unwrap_or(Do::Write)
    }
}

impl Effect for Scripted {
    fn name(&self) -> &EffectName {
        &self.name
    }

    fn event_types(&self) -> &[&'static str] {
        &["#"]
    }

    fn apply<'a>(
        &'a self,
        transaction: &'a Transaction<'_>,
        events: &'a [Applicable<'a>],
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            for one in events {
                let order = self.order(one.event);
                let refused = || Refusal::Later("told to fail".to_owned());
                match order {
                    Do::FailBefore => return Err(refused()),
                    Do::Hang => std::future::pending().await,
                    Do::Panic => panic!("told to panic"),
                    Do::Run(statement) => transaction.batch_execute(statement).await?,
                    Do::WriteAfter(time) => {
                        tokio::time::sleep(time).await;
                        write(transaction, one).await?;
                    }
                    Do::Write | Do::FailAfter => write(transaction, one).await?,
                }
                if order == Do::FailAfter {
                    return Err(refused());
                }
            }
            Ok(())
        })
    }
}

async fn write(transaction: &Transaction<'_>, one: &Applicable<'_>) -> Result<(), Refusal> {
    let event = one.event;
    transaction
        .execute(
            "insert into effects (event_id, tenant, aggregate, version, late, body)
             values ($1, $2, $3, $4, $5, $6)",
            &[
                &event.identity.event_id,
                &event.identity.tenant_id.as_str(),
                &event.aggregate.aggregate_id.as_str(),
                &event.version,
                &(one.place == Place::Late),
                &event.payload.as_ref(),
            ],
        )
        .await?;
    Ok(())
}
