//! The traffic: intents at a rate, new tickets and changes of those that are there.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::{Client, Method};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::call::{Call, Called};
use super::config::LoadConfig;
use super::history::{Entry, History, Outcome};

/// Why there is no traffic.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The history cannot be written.
    #[error("the history cannot be written")]
    History(#[from] io::Error),
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Client(#[from] reqwest::Error),
}

/// What came of all intents.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Totals {
    /// How many there were.
    pub intents: u64,
    /// Committed.
    pub ok: u64,
    /// Not committed.
    pub refused: u64,
    /// Either.
    pub unknown: u64,
    /// Requests sent for them.
    pub tries: u64,
    /// Committed ones a second.
    pub per_second: f64,
    /// The median time of an intent.
    pub p50_ms: f64,
    /// The time that one in a hundred exceeds.
    pub p99_ms: f64,
}

/// A ticket that may be changed.
#[derive(Debug)]
struct Ticket {
    tenant: usize,
    id: Uuid,
    version: i64,
    /// Not before.
    ready_at: Instant,
}

/// What all intents share.
struct Shared {
    config: LoadConfig,
    client: Client,
    history: History,
    tickets: Mutex<Vec<Ticket>>,
    totals: Mutex<(Totals, Histogram<u64>)>,
    bar: ProgressBar,
}

/// An intent, before it is sent.
struct Intent {
    number: u64,
    tenant: usize,
    operation: &'static str,
    payload: String,
    ticket: Option<Ticket>,
    call: Call,
}

/// Sends traffic for as long as configured, or until stopped, and waits for what is under way.
///
/// # Errors
/// [`LoadError`] if it cannot begin or the history cannot be written.
pub async fn run(config: LoadConfig, shutdown: CancellationToken) -> Result<Totals, LoadError> {
    let (began, duration) = (Instant::now(), config.duration);
    let mut ticks = interval(Duration::from_secs(1).div_f64(config.rate as f64));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let users = Arc::new(Semaphore::new(config.users));
    let mut random = Rng::with_seed(config.seed);
    let shared = Arc::new(Shared::new(config)?);
    let mut under_way: JoinSet<io::Result<()>> = JoinSet::new();
    for number in 0.. {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            () = tokio::time::sleep_until(began + duration) => break,
            _ = ticks.tick() => {}
        }
        let Ok(permit) = Arc::clone(&users).acquire_owned().await else {
            break;
        };
        let (shared, intent) = (Arc::clone(&shared), shared.intent(number, &mut random));
        under_way.spawn(async move {
            let sent = shared.send(intent).await;
            drop(permit);
            sent
        });
        while let Some(Ok(sent)) = under_way.try_join_next() {
            sent?;
        }
    }
    while let Some(sent) = under_way.join_next().await {
        sent.map_err(io::Error::other)??;
    }
    shared.bar.finish_and_clear();
    Ok(shared.totals(began.elapsed()))
}

impl Shared {
    fn new(config: LoadConfig) -> Result<Self, LoadError> {
        let style = "{elapsed_precise} {bar:30} {pos}/{len} intents, {per_sec}, {msg}";
        let expected = config.duration.as_secs_f64() * config.rate as f64;
        let bar = ProgressBar::new(expected as u64);
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        let histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3);
        Ok(Self {
            client: Client::builder().timeout(config.timeout).build()?,
            history: History::create(config.history.as_deref())?,
            tickets: Mutex::default(),
            totals: Mutex::new((Totals::default(), histogram.map_err(io::Error::other)?)),
            bar,
            config,
        })
    }

    /// A new ticket, or a change of one that has not been touched for a while.
    fn intent(&self, number: u64, random: &mut Rng) -> Intent {
        let payload = payload(random, self.config.payload_bytes);
        let wants_change = random.u64(0..100) < self.config.updates;
        let ticket = wants_change.then(|| self.take_ticket(random)).flatten();
        let tenant = ticket.as_ref().map_or_else(
            || random.usize(0..self.config.tenants.len()),
            |ticket| ticket.tenant,
        );
        let url = &self.config.url;
        let subject = format!("ticket of intent {number}");
        let (operation, method, url, body) = match &ticket {
            None => {
                let body = format!("{{\"subject\":\"{subject}\",\"payload\":{payload}}}");
                ("create", Method::POST, format!("{url}/v1/tickets"), body)
            }
            Some(ticket) => {
                let change = change(random, number);
                let body = format!("{{{change},\"payload\":{payload}}}");
                let url = format!("{url}/v1/tickets/{}", ticket.id);
                ("update", Method::PATCH, url, body)
            }
        };
        let call = Call {
            method,
            url,
            key: self.config.tenants[tenant].1.clone(),
            idempotency_key: Uuid::now_v7().to_string(),
            expected_version: ticket.as_ref().map(|ticket| ticket.version),
            body,
        };
        Intent {
            number,
            tenant,
            operation,
            payload,
            ticket,
            call,
        }
    }

    fn take_ticket(&self, random: &mut Rng) -> Option<Ticket> {
        let mut tickets = lock(&self.tickets);
        let now = Instant::now();
        // A few tries; with a long think time most tickets may not be ready.
        let found = (0..8).find_map(|_| {
            let at = random.usize(0..tickets.len().max(1));
            (tickets.get(at)?.ready_at <= now).then_some(at)
        })?;
        Some(tickets.swap_remove(found))
    }

    async fn send(&self, intent: Intent) -> io::Result<()> {
        let began = Instant::now();
        let patience = self.config.patience;
        let called = intent.call.until_known(&self.client, patience).await;
        let took = began.elapsed();
        self.count(&called, took);
        let ticket = intent.ticket.as_ref();
        let written = called.written.as_ref();
        self.history.write(&Entry {
            intent: intent.number,
            tenant: self.config.tenants[intent.tenant].0.as_str(),
            operation: intent.operation,
            idempotency_key: &intent.call.idempotency_key,
            outcome: called.outcome,
            status: called.status,
            tries: called.tries,
            took_ms: took.as_secs_f64() * 1e3,
            ticket_id: written
                .map(|written| written.ticket_id)
                .or(ticket.map(|t| t.id)),
            expected_version: intent.call.expected_version,
            version: written.map(|written| written.version),
            event_id: written.map(|written| written.event_id),
            payload: &intent.payload,
        })?;
        // After an unknown outcome its version is not known either: it is left alone.
        if let Some(written) = written {
            lock(&self.tickets).push(Ticket {
                tenant: intent.tenant,
                id: written.ticket_id,
                version: written.version,
                ready_at: Instant::now() + self.config.think,
            });
        }
        Ok(())
    }

    fn count(&self, called: &Called, took: Duration) {
        let mut totals = lock(&self.totals);
        let (totals, histogram) = &mut *totals;
        totals.intents += 1;
        totals.tries += u64::from(called.tries);
        match called.outcome {
            Outcome::Ok => totals.ok += 1,
            Outcome::Refused => totals.refused += 1,
            Outcome::Unknown => totals.unknown += 1,
        }
        histogram.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        let Totals {
            refused, unknown, ..
        } = *totals;
        self.bar
            .set_message(format!("{refused} refused, {unknown} unknown"));
        self.bar.inc(1);
    }

    fn totals(&self, took: Duration) -> Totals {
        let totals = lock(&self.totals);
        let (totals, histogram) = &*totals;
        let milliseconds = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Totals {
            per_second: totals.ok as f64 / took.as_secs_f64(),
            p50_ms: milliseconds(0.5),
            p99_ms: milliseconds(0.99),
            ..totals.clone()
        }
    }
}

fn change(random: &mut Rng, number: u64) -> String {
    match random.u8(0..4) {
        0 => format!("\"subject\":\"changed by intent {number}\""),
        1 => format!("\"assignee\":\"agent {}\"", random.u8(0..20)),
        2 => format!(
            "\"priority\":\"{}\"",
            random.choice(["low", "high"]).unwrap_or("low")
        ),
        _ => {
            let statuses = ["open", "pending", "resolved", "closed"];
            format!(
                "\"status\":\"{}\"",
                random.choice(statuses).unwrap_or("open")
            )
        }
    }
}

/// Bytes that a careless reader would change: big numbers, floats, escapes, order of names.
fn payload(random: &mut Rng, bytes: usize) -> String {
    let filler: String = std::iter::repeat_with(|| random.alphanumeric())
        .take(bytes)
        .collect();
    let (number, half) = (random.u64(..), random.u32(..));
    format!(
        "{{\"z\":1.10,\"big\":12345678901234567890{number},\"path\":\"C:\\\\temp\\u00e9\",\
         \"a\":[1e2,-0.0,{half}],\"filler\":\"{filler}\"}}"
    )
}

/// Each change leaves it whole, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
