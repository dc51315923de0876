//! What the tests share: an inbox over a database of its own, events, and an effect that can be
//! told what to do.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Transaction};
use event::{
    Aggregate, AggregateId, AggregateType, ContentType, Delivered, EffectName, Event, EventType,
    HeaderValue, Headers, Identity, Message, PoolName, Source, TenantId, TraceContext,
};
use futures_util::future::BoxFuture;
use inbox::{Applicable, Delivery, Effect, Inbox, Outcome, Place, Policy, Refusal};
use sandbox::Site;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// An inbox with a database of its own.
pub(crate) struct World {
    pub(crate) inbox: Inbox,
    pub(crate) database: Client,
    _site: Site,
}

impl World {
    pub(crate) async fn new(name: &str) -> Self {
        Self::with(name, quick()).await
    }

    pub(crate) async fn with(name: &str, policy: Policy) -> Self {
        let sandbox = sandbox::shared().await.expect("servers");
        let site = sandbox.site(name).await.expect("a site");
        let database = site.database().await.expect("a session");
        database
            .batch_execute(
                "create table public.effects (
                   entry bigint generated always as identity primary key,
                   effect text not null, event_id uuid not null, tenant text not null,
                   version bigint, place text not null, body text not null check (body <> 'refused'));
                 grant select, insert on public.effects to ticketflow_consumer",
            )
            .await
            .expect("a table for effects");
        let inbox = Inbox::new(pool(&site), policy);
        Self {
            inbox,
            database,
            _site: site,
        }
    }

    pub(crate) async fn count(&self, query: &str) -> i64 {
        let row = self.database.query_one(query, &[]).await.expect(query);
        row.get(0)
    }

    pub(crate) async fn receipts(&self) -> i64 {
        self.count("select count(*) from ticketflow.effect_receipts")
            .await
    }

    pub(crate) async fn effects(&self) -> i64 {
        self.count("select count(*) from effects").await
    }

    /// State and reason of each row, in the order they were written.
    pub(crate) async fn rows(&self) -> Vec<(String, String)> {
        let query = "select state, reason from ticketflow.deferred_deliveries order by delivery_id";
        let rows = self.database.query(query, &[]).await.expect("rows");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    pub(crate) async fn run(&self, statement: &str) {
        self.database
            .batch_execute(statement)
            .await
            .expect(statement);
    }

    /// Makes every row due and tries it, until nothing is due any more.
    pub(crate) async fn retry_all(&self, effect: &dyn Effect) -> Vec<Outcome> {
        self.run(
            "update ticketflow.deferred_deliveries set next_attempt_at = clock_timestamp()
             where state <> 'parked'",
        )
        .await;
        let mut outcomes = Vec::new();
        loop {
            let due = self
                .inbox
                .due(&[effect.name().as_str()], 100)
                .await
                .expect("due");
            if due.is_empty() {
                return outcomes;
            }
            for one in due {
                let tried = if one.suspect {
                    self.inbox.try_suspect(effect, &one, "test").await
                } else {
                    self.inbox.retry(effect, &one).await
                };
                outcomes.extend(tried.expect("tried"));
            }
        }
    }
}

/// Waits are short; nothing depends on how short.
pub(crate) fn quick() -> Policy {
    Policy {
        order_wait: Duration::from_secs(3600),
        max_attempts: 3,
        ..Policy::default()
    }
}

fn pool(site: &Site) -> Pool {
    let mut config: tokio_postgres::Config = site.database_url.parse().expect("a URL");
    config.options("-c role=ticketflow_consumer -c lock_timeout=10s");
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Verified,
    };
    Pool::builder(Manager::from_config(config, NoTls, recycling))
        .max_size(16)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(Duration::from_secs(10)))
        .build()
        .expect("a pool")
}

/// Writes a row for each event, unless told to refuse it.
pub(crate) struct Recorder {
    name: EffectName,
    ordered: bool,
    refusing: Arc<Mutex<HashSet<Uuid>>>,
    fail_after_writing: bool,
}

impl Recorder {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: EffectName::parse(name).unwrap(),
            ordered: false,
            refusing: Arc::default(),
            fail_after_writing: false,
        }
    }

    pub(crate) fn ordered(name: &str) -> Self {
        Self {
            ordered: true,
            ..Self::new(name)
        }
    }

    /// Fails after its row is written.
    pub(crate) fn failing(name: &str) -> Self {
        Self {
            fail_after_writing: true,
            ..Self::new(name)
        }
    }

    pub(crate) fn refuse(&self, event: &Event) {
        self.refusing
            .lock()
            .unwrap()
            .insert(event.identity.event_id);
    }

    pub(crate) fn take(&self, event: &Event) {
        self.refusing
            .lock()
            .unwrap()
            .remove(&event.identity.event_id);
    }
}

impl Effect for Recorder {
    fn name(&self) -> &EffectName {
        &self.name
    }

    fn event_types(&self) -> &[&'static str] {
        &["#"]
    }

    fn keeps_order(&self) -> bool {
        self.ordered
    }

    fn check(&self, event: &Event) -> Result<(), String> {
        if event.payload.as_ref() == b"never" {
            return Err("it says never".to_owned());
        }
        Ok(())
    }

    fn apply<'a>(
        &'a self,
        transaction: &'a Transaction<'_>,
        events: &'a [Applicable<'a>],
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            for one in events {
                let identity = &one.event.identity;
                let body = String::from_utf8_lossy(&one.event.payload).into_owned();
                transaction
                    .execute(
                        "insert into effects (effect, event_id, tenant, version, place, body)
                         values ($1, $2, $3, $4, $5, $6)",
                        &[
                            &self.name.as_str(),
                            &identity.event_id,
                            &identity.tenant_id.as_str(),
                            &one.event.version,
                            &shown(one.place),
                            &body,
                        ],
                    )
                    .await?;
                if self.refusing.lock().unwrap().contains(&identity.event_id) {
                    return Err(Refusal::Later("told to refuse".to_owned()));
                }
            }
            if self.fail_after_writing {
                return Err(Refusal::Later("fails after writing".to_owned()));
            }
            Ok(())
        })
    }
}

fn shown(place: Place) -> &'static str {
    match place {
        Place::Unordered => "unordered",
        Place::Next => "next",
        Place::Late => "late",
        Place::AfterGap => "gap",
    }
}

/// An event of one aggregate of tenant acme.
pub(crate) fn event(aggregate: &str, version: i64) -> Event {
    Event {
        identity: Identity {
            event_id: Uuid::now_v7(),
            tenant_id: TenantId::parse("acme").unwrap(),
            source: Source::parse("ticketflow").unwrap(),
        },
        aggregate: Aggregate {
            aggregate_type: AggregateType::parse("order").unwrap(),
            aggregate_id: AggregateId::parse(aggregate).unwrap(),
        },
        version: Some(version),
        previous_version: Some(version - 1),
        event_type: EventType::parse("order.changed").unwrap(),
        content_type: ContentType::parse("application/json").unwrap(),
        payload: format!("{{\"v\":{version}}}").into(),
        headers: Headers::new(),
        trace_context: TraceContext::default(),
        occurred_at: chrono::Utc::now(),
    }
}

/// Events of versions 1 to `last`.
pub(crate) fn events(aggregate: &str, last: i64) -> Vec<Event> {
    (1..=last)
        .map(|version| event(aggregate, version))
        .collect()
}

/// The event with another payload.
pub(crate) fn other_content(event: &Event, payload: &str) -> Event {
    Event {
        payload: payload.to_owned().into(),
        ..event.clone()
    }
}

pub(crate) fn delivered(event: &Event) -> Delivered {
    let message = Message::of(event, &shared()).expect("publishable");
    let headers = message
        .headers
        .into_iter()
        .map(|(name, value)| (name, HeaderValue::Text(value)));
    Delivered {
        routing_key: message.routing_key,
        message_id: Some(message.message_id),
        kind: Some(message.kind),
        content_type: Some(message.content_type),
        headers: headers.collect(),
        body: message.body,
    }
}

pub(crate) fn delivery(event: &Event) -> Delivery {
    Delivery::read(shared(), delivered(event))
}

pub(crate) fn deliveries<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Delivery> {
    events.into_iter().map(delivery).collect()
}

fn shared() -> PoolName {
    PoolName::parse("shared").unwrap()
}
