//! An effect of one's own: what each customer has paid, from `invoice.paid` events.
//!
//! `DATABASE_URL=… cargo run -p inbox --example totals` applies one event twice and shows that it
//! counted once. A service takes its deliveries from its own queue `ticketflow.<pool>.totals`.

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Transaction};
use event::{Delivered, EffectName, Event, EventType, HeaderValue, Message, PoolName};
use futures_util::future::BoxFuture;
use inbox::{Applicable, Delivery, Effect, Inbox, Policy, Refusal};
use serde::Deserialize;

/// The table the effect writes. In a service it is one of its migrations.
pub(crate) const TABLE: &str = "create table if not exists customer_totals (
  tenant_id text not null, customer text not null, cents bigint not null,
  primary key (tenant_id, customer))";

/// Adds up what was paid.
#[derive(Debug)]
pub(crate) struct Totals {
    name: EffectName,
}

#[derive(Deserialize)]
struct Paid {
    customer: String,
    cents: i64,
}

impl Totals {
    /// The effect.
    ///
    /// # Errors
    /// Never: its name is valid.
    pub(crate) fn new() -> Result<Self, event::InvalidName> {
        Ok(Self {
            name: EffectName::parse("totals")?,
        })
    }
}

fn parse(event: &Event) -> Result<Paid, String> {
    serde_json::from_slice(&event.payload).map_err(|error| format!("not a payment: {error}"))
}

impl Effect for Totals {
    fn name(&self) -> &EffectName {
        &self.name
    }

    fn event_types(&self) -> &[&'static str] {
        &["invoice.paid"]
    }

    fn check(&self, event: &Event) -> Result<(), String> {
        parse(event).map(drop)
    }

    fn apply<'a>(
        &'a self,
        transaction: &'a Transaction<'_>,
        events: &'a [Applicable<'a>],
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            // One after the other is the simplest that is right; the order of the keys is what
            // keeps two consumers from waiting for each other.
            let mut paid = Vec::with_capacity(events.len());
            for one in events {
                let tenant = one.event.identity.tenant_id.as_str();
                paid.push((tenant, parse(one.event).map_err(Refusal::Never)?));
            }
            paid.sort_by(|(one, a), (other, b)| (one, &a.customer).cmp(&(other, &b.customer)));
            for (tenant, Paid { customer, cents }) in paid {
                transaction
                    .execute(
                        "insert into customer_totals as total values ($1, $2, $3)
                         on conflict (tenant_id, customer)
                         do update set cents = total.cents + excluded.cents",
                        &[&tenant, &customer, &cents],
                    )
                    .await?;
            }
            Ok(())
        })
    }
}

/// A delivery as RabbitMQ would bring it.
///
/// # Errors
/// If the event is not one that can be published.
pub(crate) fn delivered(event: &Event, pool: &PoolName) -> Result<Delivered, event::Unpublishable> {
    let message = Message::of(event, pool)?;
    let headers = message
        .headers
        .into_iter()
        .map(|(name, value)| (name, HeaderValue::Text(value)));
    Ok(Delivered {
        routing_key: message.routing_key,
        message_id: Some(message.message_id),
        kind: Some(message.kind),
        content_type: Some(message.content_type),
        headers: headers.collect(),
        body: message.body,
    })
}

fn example_event() -> Result<Event, Box<dyn std::error::Error>> {
    let new = event::NewEvent::json(
        "acme",
        ("invoice", "2026-118"),
        "invoice.paid",
        r#"{"customer":"c-9","cents":1250}"#,
    )?;
    Ok(Event {
        identity: event::Identity {
            event_id: uuid::Uuid::now_v7(),
            tenant_id: new.tenant_id,
            source: new.source,
        },
        aggregate: new.aggregate,
        version: Some(1),
        previous_version: Some(0),
        event_type: EventType::parse("invoice.paid")?,
        content_type: new.content_type,
        payload: new.payload,
        headers: new.headers,
        trace_context: new.trace_context,
        occurred_at: chrono::Utc::now(),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Verified,
    };
    let manager = Manager::from_config(url.parse()?, tokio_postgres::NoTls, recycling);
    let pool = Pool::builder(manager)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(std::time::Duration::from_secs(5)))
        .build()?;
    pool.get().await?.batch_execute(TABLE).await?;
    let inbox = Inbox::new(pool, Policy::default());
    let totals = Totals::new()?;
    let shared = PoolName::parse("shared")?;
    let delivery = Delivery::read(shared.clone(), delivered(&example_event()?, &shared)?);
    for _ in 0..2 {
        println!("{:?}", inbox.apply_once(&totals, &delivery).await?);
    }
    Ok(())
}
