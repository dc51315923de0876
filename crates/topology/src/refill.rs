//! Sending a queue what it has missed, and nothing that it has had.

use std::collections::BTreeMap;
use std::time::Duration;

use broker::{Broker, Publish, PublishOutcome, Publishers, Refusal, Route};
use event::Message;
use runtime::database::Database;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::error::TopologyError;
use crate::generation::{Step, go_on};
use crate::patterns::expression;
use crate::pools::QueueRow;
use crate::replay::Replay;
use crate::statement;

/// Ids are cheap, and each page looks through all published events: 4 s for a million.
const PAGE: i64 = 50_000;

/// Most events, and most bytes of them, that are loaded and sent at once.
const WAVE_EVENTS: usize = 256;
const WAVE_BYTES: i64 = 8 * 1024 * 1024;

/// For the answers to one wave.
const CONFIRMS: Duration = Duration::from_secs(15);

/// A page may look through millions of rows; as in `take_time.sql`.
pub(crate) const LIST: Duration = Duration::from_mins(10);

/// How often to say that a long look goes on. Several times within [`crate::AT_WORK`].
const SAY: Duration = Duration::from_secs(4);

/// An event that is missing.
struct Missing {
    position: i64,
    identity: (Uuid, String, String),
    bytes: i64,
}

/// What to refill, and from where on.
pub(crate) struct Refill<'a> {
    pub(crate) database: &'a Database,
    pub(crate) broker: &'a Broker,
    pub(crate) row: &'a QueueRow,
    pub(crate) wanted: Wanted<'a>,
}

/// Which events are sent.
pub(crate) enum Wanted<'a> {
    /// Those that the queue has missed, published at least so long ago.
    Missing(Duration),
    /// Those that a person asks for.
    Replay(&'a Replay),
}

impl Refill<'_> {
    /// Sends all that is missing above `after`, which moves along with what is confirmed, so that
    /// another try does not begin from the start.
    pub(crate) async fn run(&self, after: &mut i64) -> Result<(u64, Step), TopologyError> {
        let mut sent = 0;
        loop {
            let page = self.page_at_work(*after).await?;
            let Some(last) = page.last().map(|missing| missing.position) else {
                return Ok((sent, Step::Done));
            };
            let mut rest = &page[..];
            while !rest.is_empty() {
                let (wave, others) = rest.split_at(wave_size(rest));
                sent += self.send(wave, after).await?;
                rest = others;
                if !self.row.is_ready() && go_on(self.database, self.row).await? == Step::Superseded
                {
                    return Ok((sent, Step::Superseded));
                }
            }
            *after = last;
        }
    }

    /// A page, saying meanwhile that somebody is at it.
    async fn page_at_work(&self, after: i64) -> Result<Vec<Missing>, TopologyError> {
        let page = self.page(after);
        tokio::pin!(page);
        loop {
            tokio::select! {
                biased;
                page = &mut page => return page,
                () = tokio::time::sleep(SAY) => {
                    // With a pool of one connection this fails, and another relay may begin too:
                    // copies, no more. That it was overtaken shows after the page.
                    if let Err(error) = go_on(self.database, self.row).await {
                        tracing::debug!(%error, "could not say that a refill goes on");
                    }
                }
            }
        }
    }

    async fn page(&self, after: i64) -> Result<Vec<Missing>, TopologyError> {
        let rows = match &self.wanted {
            Wanted::Missing(published_before) => self.missing(after, *published_before).await?,
            Wanted::Replay(replay) => {
                let page = replay.page(self.row, after, PAGE);
                self.list(include_str!("sql/replay.sql"), &page.values())
                    .await?
            }
        };
        rows.iter().map(read_missing).collect()
    }

    async fn missing(&self, after: i64, age: Duration) -> Result<Vec<Row>, TopologyError> {
        let queue = &self.row.queue;
        let types: Vec<String> = queue.patterns.iter().map(|p| expression(p)).collect();
        let (pool, effect) = (queue.pool.as_str(), queue.effect.as_str());
        let age = age.as_secs_f64();
        let text = include_str!("sql/missing.sql");
        self.list(text, &[&pool, &effect, &types, &after, &age, &PAGE])
            .await
    }

    async fn list(
        &self,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, TopologyError> {
        let work = self.database.transaction(LIST, async |transaction| {
            statement::rows(transaction, include_str!("sql/take_time.sql"), &[]).await?;
            statement::rows(transaction, text, values).await
        });
        work.await
    }

    async fn send(&self, wave: &[Missing], after: &mut i64) -> Result<u64, TopologyError> {
        let queue = self.row.queue.name();
        let messages = self.messages(wave, &queue).await?;
        let publisher = self.broker.publisher().await?;
        let bodies: Vec<Message> = messages
            .iter()
            .map(|(_, message)| message.clone())
            .collect();
        let deadline = Instant::now() + CONFIRMS;
        let published = publisher
            .publish_wave(Route::Queue, &bodies, deadline)
            .await;
        let mut sent = 0;
        for ((position, _), outcome) in messages.iter().zip(published.outcomes) {
            match outcome {
                PublishOutcome::Confirmed => sent += 1,
                // It never fits, so it was never published either: nothing is missing.
                PublishOutcome::Refused(Refusal::Invalid { reason }) => {
                    tracing::warn!(position, reason, "not refilled");
                }
                outcome @ (PublishOutcome::Unroutable { .. }
                | PublishOutcome::Refused(_)
                | PublishOutcome::Unknown(_)) => {
                    return Err(TopologyError::Refill { queue, outcome });
                }
            }
            *after = *position;
        }
        Ok(sent)
    }

    /// The messages of a wave, in its order. A row that does not decode was published once and has
    /// been spoiled since: it can go to no queue any more, and must not keep the others from theirs.
    async fn messages(
        &self,
        wave: &[Missing],
        queue: &str,
    ) -> Result<Vec<(i64, Message)>, TopologyError> {
        let ids: Vec<Uuid> = wave.iter().map(|missing| missing.identity.0).collect();
        let (least, most) = (ids.iter().min(), ids.iter().max());
        let text = include_str!("sql/contents.sql");
        let rows = statement::alone(self.database, text, &[&ids, &least, &most]).await?;
        let mut found = BTreeMap::new();
        for row in &rows {
            found.insert(identity(row)?, row);
        }
        let mut messages = Vec::with_capacity(wave.len());
        for missing in wave {
            let Some(row) = found.get(&missing.identity) else {
                continue;
            };
            let message = outbox::event_of(row)
                .map_err(|error| error.to_string())
                .and_then(|event| {
                    Message::of(&event, &self.row.queue.pool).map_err(|error| error.to_string())
                });
            match message {
                Ok(message) => messages.push((missing.position, message.readdressed(queue))),
                Err(error) => {
                    let (event_id, tenant, source) = &missing.identity;
                    tracing::error!(
                        queue, %event_id, tenant, source, position = missing.position, error,
                        "a queue has lost this event: its row is spoiled and cannot be sent again"
                    );
                }
            }
        }
        Ok(messages)
    }
}

/// How many of the missing ones go out at once; at least one.
fn wave_size(missing: &[Missing]) -> usize {
    let mut bytes = 0;
    let fits = missing.iter().take(WAVE_EVENTS).take_while(|missing| {
        bytes += missing.bytes;
        bytes <= WAVE_BYTES
    });
    fits.count().max(1)
}

fn read_missing(row: &Row) -> Result<Missing, TopologyError> {
    Ok(Missing {
        position: row.try_get("position")?,
        identity: identity(row)?,
        bytes: row.try_get("bytes")?,
    })
}

fn identity(row: &Row) -> Result<(Uuid, String, String), TopologyError> {
    Ok((
        row.try_get("event_id")?,
        row.try_get("tenant_id")?,
        row.try_get("source")?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(bytes: &[i64]) -> Vec<Missing> {
        let one = |bytes: &i64| Missing {
            position: 0,
            identity: (Uuid::nil(), String::new(), String::new()),
            bytes: *bytes,
        };
        bytes.iter().map(one).collect()
    }

    #[test]
    fn a_wave_is_bounded_by_count_and_bytes_and_never_empty() {
        assert_eq!(wave_size(&missing(&[1; 300])), WAVE_EVENTS);
        assert_eq!(wave_size(&missing(&[WAVE_BYTES / 2, WAVE_BYTES / 2, 1])), 2);
        assert_eq!(wave_size(&missing(&[WAVE_BYTES + 1, 1])), 1);
        assert_eq!(wave_size(&missing(&[1])), 1);
    }
}
