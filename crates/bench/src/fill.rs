//! Rows to measure with: drawn by a seed, written as a set, with counters that agree.

use anyhow::Context;
use bytes::Bytes;
use event::{
    Aggregate, AggregateId, AggregateType, ContentType, Event, EventType, Headers, Identity,
    Message, PoolName, Source, TenantId, TraceContext,
};
use tokio_postgres::{Client, Row};

use crate::progress;

/// Rows a statement; large ones are quick, and each moves the bar.
const CHUNK: u64 = 50_000;

/// What rows to write.
#[derive(Debug, Clone, Copy)]
pub struct Fill {
    /// How many.
    pub events: u64,
    /// Over how many tenants.
    pub tenants: u64,
    /// Over how many aggregates; at least one a tenant.
    pub aggregates: u64,
    /// Bytes of each payload.
    pub payload: u32,
    /// What tenant ids start with.
    pub prefix: &'static str,
    /// The event type.
    pub event_type: &'static str,
    /// `pending` or `published`.
    pub state: &'static str,
    /// Draws aggregates and texts.
    pub seed: u64,
    /// The number of the first row; a later fill of the same tenants goes on from there.
    pub first: u64,
}

impl Fill {
    /// 200,000 pending events of 500 bytes, 100 tenants, 2,000 aggregates.
    #[must_use]
    pub fn standard(seed: u64) -> Self {
        Self {
            events: 200_000,
            tenants: 100,
            aggregates: 2_000,
            payload: 500,
            prefix: "t",
            event_type: "ticket.updated",
            state: "pending",
            seed,
            first: 0,
        }
    }

    /// Adds the tenants, active or paused.
    ///
    /// # Errors
    /// The database's.
    pub async fn add_tenants(&self, database: &Client, state: &str) -> anyhow::Result<()> {
        let tenants = i64::try_from(self.tenants)?;
        let statement = include_str!("sql/add_tenants.sql");
        database
            .execute(statement, &[&self.prefix, &tenants, &state])
            .await
            .context("add tenants")?;
        Ok(())
    }

    /// Writes the rows. The tenants must be there.
    ///
    /// # Errors
    /// The database's.
    pub async fn write(&self, database: &Client) -> anyhow::Result<()> {
        let words = words(self.seed, 2 * usize::try_from(self.payload)? + 20_000);
        let bar = progress::bar(format!("record {} events", self.events), self.events);
        let statement = database.prepare(include_str!("sql/fill.sql")).await?;
        let (seed, tenants) = (self.seed.cast_signed(), i64::try_from(self.tenants)?);
        let (aggregates, payload) = (
            i64::try_from(self.aggregates)?,
            i32::try_from(self.payload)?,
        );
        let end = self.first + self.events;
        let mut next = self.first;
        while next < end {
            let last = (next + CHUNK).min(end) - 1;
            let (from, to) = (i64::try_from(next)?, i64::try_from(last)?);
            database
                .execute(
                    &statement,
                    &[
                        &seed,
                        &from,
                        &to,
                        &tenants,
                        &aggregates,
                        &payload,
                        &self.prefix,
                        &self.event_type,
                        &words,
                        &self.state,
                    ],
                )
                .await
                .context("record events")?;
            bar.inc(last + 1 - next);
            next = last + 1;
        }
        bar.finish_and_clear();
        Ok(())
    }
}

/// Removes all events, counters and holds.
///
/// # Errors
/// The database's.
pub async fn clear(database: &Client) -> anyhow::Result<()> {
    database
        .batch_execute(include_str!("sql/clear.sql"))
        .await
        .context("clear the outbox")
}

/// Analyses what was written and writes dirty pages now, so that neither falls into a measurement.
///
/// # Errors
/// The database's.
pub async fn settle_down(database: &Client) -> anyhow::Result<()> {
    // One by one: several in one go would be one transaction, in which there is no vacuum.
    for statement in [
        "vacuum analyze ticketflow.outbox_events",
        "vacuum analyze ticketflow.outbox_aggregates",
        "vacuum analyze ticketflow.outbox_lanes",
        "vacuum analyze ticketflow.tenants",
        "checkpoint",
    ] {
        database.batch_execute(statement).await.context(statement)?;
    }
    Ok(())
}

/// The first recorded events as the messages that the relay would make of them.
///
/// # Errors
/// The database's, or a row that cannot be a message.
pub async fn messages(database: &Client, most: u64) -> anyhow::Result<Vec<Message>> {
    let pool = PoolName::parse("shared")?;
    let rows = database
        .query(include_str!("sql/events.sql"), &[&i64::try_from(most)?])
        .await
        .context("read events")?;
    rows.iter()
        .map(|row| Ok(Message::of(&event(row)?, &pool)?))
        .collect()
}

fn event(row: &Row) -> anyhow::Result<Event> {
    let payload: Vec<u8> = row.try_get("payload")?;
    Ok(Event {
        identity: Identity {
            event_id: row.try_get("event_id")?,
            tenant_id: TenantId::parse(row.try_get("tenant_id")?)?,
            source: Source::parse(row.try_get("source")?)?,
        },
        aggregate: Aggregate {
            aggregate_type: AggregateType::parse(row.try_get("aggregate_type")?)?,
            aggregate_id: AggregateId::parse(row.try_get("aggregate_id")?)?,
        },
        version: row.try_get("version")?,
        previous_version: row.try_get("previous_version")?,
        event_type: EventType::parse(row.try_get("event_type")?)?,
        content_type: ContentType::parse(row.try_get("content_type")?)?,
        payload: Bytes::from(payload),
        headers: Headers::new(),
        trace_context: TraceContext::default(),
        occurred_at: row.try_get("occurred_at")?,
    })
}

/// Words of a small language, so that a full-text index has what it would have in life.
fn words(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut word = || -> String {
        let length = random.usize(3..9);
        std::iter::repeat_with(|| random.lowercase())
            .take(length)
            .collect()
    };
    let language: Vec<String> = std::iter::repeat_with(&mut word).take(2_000).collect();
    let mut text = Vec::with_capacity(bytes + 10);
    while text.len() < bytes {
        if let Some(word) = language.get(random.usize(..language.len())) {
            text.extend_from_slice(word.as_bytes());
            text.push(b' ');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_for_the_same_seed_and_safe_within_json() {
        assert_eq!(words(7, 1_000), words(7, 1_000));
        assert_ne!(words(7, 1_000), words(8, 1_000));
        let safe = |byte: &u8| byte.is_ascii_lowercase() || *byte == b' ';
        assert!(words(7, 1_000).iter().all(safe));
    }
}
