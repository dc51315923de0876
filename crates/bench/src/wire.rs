//! What came out of a queue: whether everything did, and in order.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, bail};
use broker::{BatchLimits, Broker};
use event::Event;

use crate::progress;
use crate::report::Report;

/// How many messages a reader may have at once, and takes at once.
const PREFETCH: u16 = 2_000;
const LIMITS: BatchLimits = BatchLimits {
    deliveries: 1_000,
    bytes: 8 << 20,
    linger: Duration::from_millis(5),
};

/// How long a queue may bring nothing before what is missing counts as lost.
const SILENCE: Duration = Duration::from_secs(10);

/// First arrivals, aggregate by aggregate. Versions start at 1 and have no gaps.
#[derive(Debug, Default)]
pub struct Arrivals {
    heads: HashMap<(String, String), i64>,
    /// Events that arrived for the first time.
    pub first: u64,
    /// Those that had arrived before.
    pub again: u64,
    /// Those that arrived before their predecessor.
    pub out_of_order: u64,
}

impl Arrivals {
    /// Takes in one that arrived.
    pub fn note(&mut self, event: &Event) {
        let tenant = event.identity.tenant_id.to_string();
        let aggregate = event.aggregate.aggregate_id.to_string();
        let head = self.heads.entry((tenant, aggregate)).or_default();
        let version = event.version.unwrap_or(0);
        if version <= *head {
            self.again += 1;
            return;
        }
        if version != *head + 1 {
            self.out_of_order += 1;
        }
        self.first += 1;
        *head = version;
    }

    /// Tells a report what is wrong with them, if anything.
    pub fn judge(&self, expected: u64, report: &mut Report) {
        if self.first != expected {
            let first = self.first;
            report.fault(format!(
                "{expected} events were recorded, {first} arrived in order"
            ));
        }
        if self.out_of_order > 0 {
            report.fault(format!("{} events arrived out of order", self.out_of_order));
        }
    }
}

/// Reads a queue until so many events have arrived for the first time, or nothing more comes.
///
/// # Errors
/// A subscription that ends, a message that is no event.
pub async fn read(broker: &Broker, queue: &str, expected: u64) -> anyhow::Result<Arrivals> {
    let mut arrivals = Arrivals::default();
    read_on(broker, queue, expected, &mut arrivals).await?;
    Ok(arrivals)
}

/// The same, going on from what has arrived before: until that many in all.
///
/// # Errors
/// A subscription that ends, a message that is no event.
pub async fn read_on(
    broker: &Broker,
    queue: &str,
    expected: u64,
    arrivals: &mut Arrivals,
) -> anyhow::Result<()> {
    let mut deliveries = broker.deliveries(queue, PREFETCH).await?;
    let bar = progress::bar("check the order", expected);
    while arrivals.first < expected {
        let Ok(batch) = tokio::time::timeout(SILENCE, deliveries.batch(LIMITS)).await else {
            break;
        };
        let batch = match batch {
            Ok(batch) => batch,
            Err(ended) => bail!("reading {queue}: {ended}"),
        };
        for received in batch.deliveries() {
            let event = received.delivered.read().context("read a message")?;
            arrivals.note(&event);
        }
        if let Err(ended) = batch.ack().await {
            bail!("reading {queue}: {ended}");
        }
        bar.set_position(arrivals.first);
    }
    bar.finish_and_clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use event::{Identity, NewEvent};

    use super::*;

    fn arrived(versions: &[i64]) -> Arrivals {
        let new = NewEvent::json("acme", ("ticket", "1"), "ticket.updated", "{}").expect("valid");
        let mut arrivals = Arrivals::default();
        for version in versions {
            arrivals.note(&Event {
                identity: Identity {
                    event_id: uuid::Uuid::nil(),
                    tenant_id: new.tenant_id.clone(),
                    source: new.source.clone(),
                },
                aggregate: new.aggregate.clone(),
                version: Some(*version),
                previous_version: Some(version - 1),
                event_type: new.event_type.clone(),
                content_type: new.content_type.clone(),
                payload: new.payload.clone(),
                headers: new.headers.clone(),
                trace_context: new.trace_context.clone(),
                occurred_at: chrono::Utc::now(),
            });
        }
        arrivals
    }

    fn is_sound(versions: &[i64], expected: u64) -> bool {
        let mut report = Report::new("test");
        arrived(versions).judge(expected, &mut report);
        report.is_sound()
    }

    #[test]
    fn only_a_whole_row_of_first_arrivals_is_sound() {
        assert!(is_sound(&[1, 2, 3], 3));
        assert!(is_sound(&[1, 2, 1, 2, 3], 3), "a repeat is not a fault");
        assert!(!is_sound(&[1, 3], 3), "lost");
        assert!(!is_sound(&[1, 3, 2], 3), "swapped");
        assert!(!is_sound(&[1, 2, 3], 4), "missing at the end");
    }
}
