//! HTTP traffic of all tenants: tickets made and changed, every answer written down.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use event::{Identity, Source, TenantId};
use fastrand::Rng;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use super::cast::{Cast, Tenant};
use crate::ledger::Committed;

/// Clients at once.
const CLIENTS: u64 = 8;

/// Tickets a client goes back to.
const OPEN: usize = 20;

/// How long one request may take with all its repeats, while servers are down.
const PATIENCE: Duration = Duration::from_secs(120);

/// The part of the traffic that waits until the broker has been taken down.
const BEFORE_BOUNCE: f64 = 0.7;

/// What the traffic is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// How many tickets are made.
    pub(crate) tickets: u32,
    /// The same seed makes the same requests.
    pub(crate) seed: u64,
    /// How long all of it takes at least, so that there is load while things are broken.
    pub(crate) lasts: Duration,
    /// Whether the last part waits until the broker has been taken down.
    pub(crate) waits_for_bounce: bool,
}

/// Requests under way.
#[derive(Debug)]
pub(crate) struct Traffic {
    clients: JoinSet<anyhow::Result<()>>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    http: Client,
    address: SocketAddr,
    committed: Mutex<Committed>,
    /// Tickets made so far.
    made: watch::Sender<u32>,
    wanted: u32,
    broker_went_down: watch::Sender<bool>,
}

/// What the producer says of a write.
#[derive(Debug, Deserialize)]
struct Written {
    ticket_id: Uuid,
    version: i64,
    event_id: Uuid,
}

impl Traffic {
    pub(crate) fn start(plan: Plan, cast: &Cast) -> anyhow::Result<Self> {
        // Only loopback is spoken to, but the client is not built without one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(15))
            .build()?;
        let shared = Arc::new(Shared {
            http,
            address: cast.http,
            committed: Mutex::new(Committed {
                complete: true,
                ..Committed::default()
            }),
            made: watch::Sender::new(0),
            wanted: plan.tickets,
            broker_went_down: watch::Sender::new(!plan.waits_for_bounce),
        });
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let tickets = share(plan.tickets, number);
            let client = Script {
                random: Rng::with_seed(plan.seed.wrapping_mul(CLIENTS).wrapping_add(number)),
                tenants: cast.tenants.clone(),
                open: Vec::new(),
                shared: Arc::clone(&shared),
                pause: plan.lasts / tickets.max(1),
            };
            clients.spawn(client.play(tickets));
        }
        Ok(Self { clients, shared })
    }

    /// Waits until so much of the traffic is behind us.
    pub(crate) async fn reached(&self, part: f64) {
        let wanted = (f64::from(self.shared.wanted) * part) as u32;
        let mut made = self.shared.made.subscribe();
        // The sender is held by us.
        let _ = made.wait_for(|made| *made >= wanted).await;
    }

    /// Lets the rest of the traffic come.
    pub(crate) fn broker_went_down(&self) {
        self.shared.broker_went_down.send_replace(true);
    }

    /// Waits for the end of all clients; what was committed.
    pub(crate) async fn finish(mut self) -> anyhow::Result<Committed> {
        while let Some(client) = self.clients.join_next().await {
            client.context("a client panicked")??;
        }
        let mut committed = self
            .shared
            .committed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut committed))
    }
}

/// How many of the tickets are one client's.
fn share(tickets: u32, client: u64) -> u32 {
    let clients = u32::try_from(CLIENTS).unwrap_or(1);
    let extra = u64::from(tickets % clients) > client;
    tickets / clients + u32::from(extra)
}

/// One client: makes tickets and goes back to some of them.
struct Script {
    random: Rng,
    tenants: Vec<Tenant>,
    open: Vec<(Tenant, Uuid, i64)>,
    shared: Arc<Shared>,
    pause: Duration,
}

impl Script {
    async fn play(mut self, tickets: u32) -> anyhow::Result<()> {
        let mut next = Instant::now();
        for number in 0..tickets {
            tokio::time::sleep_until(next).await;
            next += self.pause;
            self.wait_for_the_bounce().await;
            self.make(number).await?;
            // None, one or two; one on the average.
            for _ in 0..self.random.u8(0..3) {
                self.change(number).await?;
            }
            self.shared.made.send_modify(|made| *made += 1);
        }
        Ok(())
    }

    async fn wait_for_the_bounce(&self) {
        let shared = &self.shared;
        if f64::from(*shared.made.borrow()) >= f64::from(shared.wanted) * BEFORE_BOUNCE {
            let mut down = shared.broker_went_down.subscribe();
            // The sender is held by us.
            let _ = down.wait_for(|down| *down).await;
        }
    }

    async fn make(&mut self, number: u32) -> anyhow::Result<()> {
        let tenant = self.tenants[self.random.usize(0..self.tenants.len())].clone();
        // Bytes that a program which reads and writes JSON again would change.
        let body = format!(
            r#"{{"subject":"Ticket {number}","priority":"{}","payload":{{"z":1.10,"a":12345678901234567890123,"path":"C:\\temp"}}}}"#,
            self.priority()
        );
        let request = self
            .shared
            .request(Method::POST, "/v1/tickets", &tenant)
            .body(body);
        let written = self.shared.written(request, &tenant).await?;
        if self.open.len() == OPEN {
            self.open.remove(0);
        }
        self.open.push((tenant, written.ticket_id, written.version));
        Ok(())
    }

    async fn change(&mut self, number: u32) -> anyhow::Result<()> {
        let chosen = self.random.usize(0..self.open.len());
        let (tenant, ticket, version) = self.open[chosen].clone();
        let path = format!("/v1/tickets/{ticket}");
        let change = self.another_value(number, version);
        let request = self.shared.request(Method::PATCH, &path, &tenant);
        let request = request
            .header("If-Match", format!("\"{version}\""))
            .body(change.to_string());
        let written = self.shared.written(request, &tenant).await?;
        self.open[chosen].2 = written.version;
        Ok(())
    }

    /// Always another value than before, since a change of nothing is no event.
    fn another_value(&mut self, number: u32, version: i64) -> Value {
        match self.random.u8(0..3) {
            0 => json!({ "assignee": format!("agent {number} {version}") }),
            1 => json!({ "subject": format!("Ticket {number}, change {version}") }),
            _ => {
                json!({ "body": format!("answer {number} {version}"), "priority": self.priority() })
            }
        }
    }

    fn priority(&mut self) -> &'static str {
        ["low", "normal", "high", "urgent"][self.random.usize(0..4)]
    }
}

impl Shared {
    fn request(&self, method: Method, path: &str, tenant: &Tenant) -> RequestBuilder {
        self.http
            .request(method, format!("http://{}{path}", self.address))
            .bearer_auth(&tenant.key)
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", Uuid::now_v7().to_string())
    }

    /// Sends a request, again under the same key if need be, and writes down what was committed.
    async fn written(&self, request: RequestBuilder, tenant: &Tenant) -> anyhow::Result<Written> {
        let written = self.answered(request).await?;
        let event = Identity {
            event_id: written.event_id,
            tenant_id: TenantId::parse(tenant.name)?,
            source: Source::parse("ticketflow")?,
        };
        let told = (format!("ticket/{}", written.ticket_id), written.version);
        let mut committed = self
            .committed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        committed.events.insert(event, told);
        Ok(written)
    }

    async fn answered(&self, request: RequestBuilder) -> anyhow::Result<Written> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let again = request
                .try_clone()
                .context("a request that can be sent again")?;
            let problem = match again.send().await {
                Ok(answer) if answer.status().is_success() => return Ok(answer.json().await?),
                Ok(answer) if may_pass(answer.status()) => answer.status().to_string(),
                Ok(answer) => bail!("{}: {}", answer.status(), answer.text().await?),
                Err(error) => error.to_string(),
            };
            if Instant::now() > deadline {
                bail!("the producer did not take a request in time: {problem}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Answers that say: the same again, later.
fn may_pass(status: StatusCode) -> bool {
    [
        StatusCode::CONFLICT,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::SERVICE_UNAVAILABLE,
    ]
    .contains(&status)
}

#[cfg(test)]
mod tests {
    use super::{CLIENTS, share};

    #[test]
    fn the_shares_of_all_clients_are_all_tickets() {
        for tickets in [1, 7, 8, 2000, 2003] {
            let shares = (0..CLIENTS).map(|client| share(tickets, client));
            assert_eq!(shares.sum::<u32>(), tickets);
        }
    }
}
