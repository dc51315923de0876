//! Listening at a queue: when each event arrived.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::bail;
use broker::{BatchLimits, Broker, Deliveries};
use chrono::{DateTime, Utc};
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use crate::wire::Arrivals;

const PREFETCH: u16 = 2_000;
const AT_ONCE: BatchLimits = BatchLimits {
    deliveries: 500,
    bytes: 8 << 20,
    linger: Duration::ZERO,
};
const LOOK: Duration = Duration::from_millis(20);

/// What has arrived.
#[derive(Debug, Default)]
pub struct Heard {
    /// When each event arrived for the first time.
    pub at: HashMap<Uuid, DateTime<Utc>>,
    /// In which order.
    pub arrivals: Arrivals,
    /// Why nothing more arrives, if so.
    pub ended: Option<String>,
}

/// A subscription that notes what arrives, until it is dropped.
#[derive(Debug)]
pub struct Tap {
    heard: Arc<Mutex<Heard>>,
    _listening: AbortOnDropHandle<()>,
}

impl Tap {
    /// Subscribes to a queue.
    ///
    /// # Errors
    /// The broker's.
    pub async fn open(broker: &Broker, queue: &str) -> anyhow::Result<Self> {
        let deliveries = broker.deliveries(queue, PREFETCH).await?;
        let heard = Arc::new(Mutex::new(Heard::default()));
        let listening = tokio::spawn(listen(deliveries, Arc::clone(&heard)));
        Ok(Self {
            heard,
            _listening: AbortOnDropHandle::new(listening),
        })
    }

    /// Looks at what has been heard so far.
    pub fn look<T>(&self, look: impl FnOnce(&Heard) -> T) -> T {
        look(&self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until so many events have arrived; not longer than `patience`.
    ///
    /// # Errors
    /// If the subscription ends.
    pub async fn wait(&self, events: usize, patience: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + patience;
        while self.look(|heard| heard.at.len()) < events && Instant::now() < deadline {
            if let Some(ended) = self.look(|heard| heard.ended.clone()) {
                bail!("the tap ended: {ended}");
            }
            sleep(LOOK).await;
        }
        Ok(())
    }
}

async fn listen(mut deliveries: Deliveries, heard: Arc<Mutex<Heard>>) {
    let ended = loop {
        let batch = match deliveries.batch(AT_ONCE).await {
            Ok(batch) => batch,
            Err(ended) => break ended.to_string(),
        };
        let now = Utc::now();
        let note = |heard: &mut Heard| {
            for received in batch.deliveries() {
                match received.delivered.read() {
                    Ok(event) => {
                        heard.arrivals.note(&event);
                        heard.at.entry(event.identity.event_id).or_insert(now);
                    }
                    Err(malformed) => heard.ended = Some(malformed.to_string()),
                }
            }
        };
        note(&mut heard.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(ended) = batch.ack().await {
            break ended.to_string();
        }
    };
    heard.lock().unwrap_or_else(PoisonError::into_inner).ended = Some(ended);
}
