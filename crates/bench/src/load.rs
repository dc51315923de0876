//! Events recorded one by one at a steady rate, each in a transaction of its own.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use broker::{Encoded, RawPublisher};
use chrono::{DateTime, Utc};
use event::{Message, PoolName};
use futures_util::future::try_join_all;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::{Client, Statement};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use crate::rig::Rig;
use crate::statistics::figure;
use crate::ticket;

/// Sessions that record at once. A commit takes a few milliseconds, so that 16 keep up with
/// several thousand a second.
const SESSIONS: usize = 16;

/// What to record.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Events a second.
    pub rate: f64,
    /// For how long.
    pub lasting: Duration,
    /// What tenant ids start with; five digits follow.
    pub prefix: &'static str,
    /// Over how many tenants, in turn.
    pub tenants: usize,
    /// Over how many aggregates of all; each event its own if 0.
    pub aggregates: usize,
    /// The event type.
    pub event_type: &'static str,
    /// Bytes of each payload.
    pub payload: usize,
    /// Whether the relays get a hint after each commit.
    pub hint: bool,
    /// Draws the moments.
    pub seed: u64,
}

/// An event and when its commit returned.
#[derive(Debug, Clone, Copy)]
pub struct Recorded {
    /// Its id.
    pub event_id: Uuid,
    /// When the recorder knew.
    pub committed: DateTime<Utc>,
    /// When the broker had confirmed it, if this load publishes by itself.
    pub confirmed: Option<DateTime<Utc>>,
}

impl Load {
    /// How many events that is.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of events, far from any bound"
    )]
    pub fn events(&self) -> usize {
        (self.rate * self.lasting.as_secs_f64()).round().max(1.0) as usize
    }

    /// Records it all; with `publishing`, also publishes each event as soon as it is committed.
    ///
    /// # Errors
    /// The servers'.
    pub async fn run(self, rig: &Rig, publishing: bool) -> anyhow::Result<Vec<Recorded>> {
        let hint = Arc::new(Notify::new());
        let _hinting = match self.hint {
            true => Some(hinting(rig, &hint).await?),
            false => None,
        };
        let mut sessions = Vec::new();
        for number in 0..SESSIONS {
            let database = rig.site.database().await?;
            sessions.push(Recorder {
                load: self,
                number,
                statement: database.prepare(include_str!("sql/record.sql")).await?,
                database,
                publisher: match publishing {
                    true => Some(rig.broker.raw_publisher().await?),
                    false => None,
                },
                hint: Arc::clone(&hint),
            });
        }
        let start = Instant::now() + Duration::from_millis(20);
        let running = sessions.into_iter().map(|session| {
            let running = tokio::spawn(session.run(start));
            async move { AbortOnDropHandle::new(running).await? }
        });
        let recorded = try_join_all(running).await?;
        Ok(recorded.into_iter().flatten().collect())
    }
}

/// Sends hints after commits as the producer does: on a session of its own, many as one.
async fn hinting(rig: &Rig, hint: &Arc<Notify>) -> anyhow::Result<AbortOnDropHandle<()>> {
    let session = rig.site.database().await?;
    let hint = Arc::clone(hint);
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            hint.notified().await;
            if outbox::notify(&session).await.is_err() {
                return;
            }
        }
    })))
}

struct Recorder {
    load: Load,
    number: usize,
    database: Client,
    statement: Statement,
    publisher: Option<RawPublisher>,
    hint: Arc<Notify>,
}

impl Recorder {
    async fn run(self, start: Instant) -> anyhow::Result<Vec<Recorded>> {
        let mut random = fastrand::Rng::with_seed(self.load.seed + self.number as u64);
        let mut recorded = Vec::new();
        for number in (self.number..self.load.events()).step_by(SESSIONS) {
            let place = figure(number as u64) + random.f64();
            sleep_until(start + Duration::from_secs_f64(place / self.load.rate)).await;
            recorded.push(self.record(number).await?);
        }
        Ok(recorded)
    }

    async fn record(&self, number: usize) -> anyhow::Result<Recorded> {
        let tenant = format!(
            "{}{:05}",
            self.load.prefix,
            number % self.load.tenants.max(1)
        );
        let mut event = ticket::event(&tenant, self.load.payload)?;
        let aggregate = match self.load.aggregates {
            0 => event.aggregate.aggregate_id.to_string(),
            // In turn, so that each belongs to one tenant if the tenants divide them.
            many => format!("a{}", number % many),
        };
        let event_id = event.identity.event_id;
        let payload: &[u8] = &event.payload;
        self.database
            .query_one(
                &self.statement,
                &[
                    &tenant,
                    &aggregate,
                    &self.load.event_type,
                    &payload,
                    &event_id,
                ],
            )
            .await
            .context("record an event")?;
        let committed = Utc::now();
        if self.load.hint {
            self.hint.notify_one();
        }
        let mut confirmed = None;
        if let Some(publisher) = &self.publisher {
            event.event_type = event::EventType::parse(self.load.event_type)?;
            let message = Message::of(&event, &PoolName::parse("shared")?)?;
            publisher.publish(Encoded::of(&[message])?, 1).await?;
            confirmed = Some(Utc::now());
        }
        Ok(Recorded {
            event_id,
            committed,
            confirmed,
        })
    }
}
