//! A queue beside those of the effects, and the task that reads it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use broker::{BatchLimits, Broker, ConnectOptions, EffectQueue, Ended, Received};
use event::{EffectName, Identity, PoolName};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use super::wire::Wire;
use crate::error::SandboxError;

/// The name of the tap among a pool's effects. It is in no table, so no relay waits for it.
const TAP: &str = "tap";

const LIMITS: BatchLimits = BatchLimits {
    deliveries: 500,
    bytes: 8 << 20,
    // At once: the demo wants to know of an event before its relay has settled it.
    linger: Duration::ZERO,
};

/// How many arrivals a slow listener may lag behind.
const BACKLOG: usize = 4096;

/// A pool to be tapped.
#[derive(Debug, Clone)]
pub struct TapQueue {
    /// The pool.
    pub pool: PoolName,
    /// Binding patterns: those of one effect, never `#`, or nothing would be unroutable.
    pub patterns: Vec<String>,
}

/// Reads along with the effects until it is dropped. Outlives a restart of the broker.
#[derive(Debug)]
pub struct Tap {
    wire: Arc<Mutex<Wire>>,
    arrivals: broadcast::Sender<Identity>,
    seen: watch::Sender<u64>,
    readers: Vec<JoinHandle<()>>,
    _broker: Broker,
}

impl Tap {
    /// Declares a queue for each pool and starts to read. Call it before anything is published.
    ///
    /// # Errors
    /// [`SandboxError::Broker`] if the queues cannot be declared.
    pub async fn start(amqp_url: &str, queues: &[TapQueue]) -> Result<Self, SandboxError> {
        let refused = |words: String| SandboxError::Broker {
            what: "tap the wire".to_owned(),
            words,
        };
        let options = ConnectOptions::new(amqp_url, "tap");
        let broker = Broker::start(options).map_err(|error| refused(error.to_string()))?;
        let connected = broker.connected(Duration::from_secs(30)).await;
        connected.map_err(|error| refused(error.to_string()))?;
        let mut tap = Self {
            wire: Arc::default(),
            arrivals: broadcast::Sender::new(BACKLOG),
            seen: watch::Sender::new(0),
            readers: Vec::new(),
            _broker: broker.clone(),
        };
        let declared = broker.declare_exchanges().await;
        declared.map_err(|error| refused(error.to_string()))?;
        for queue in queues {
            let effect = EffectName::parse(TAP).map_err(|error| refused(error.to_string()))?;
            let declared = EffectQueue {
                pool: queue.pool.clone(),
                effect,
                patterns: queue.patterns.clone(),
            };
            let declaring = broker.declare_effect_queue(&declared).await;
            declaring.map_err(|error| refused(error.to_string()))?;
            lock(&tap.wire).cover(queue.pool.as_str(), &queue.patterns);
            tap.read(&broker, declared.name());
        }
        Ok(tap)
    }

    /// A copy of everything seen so far.
    #[must_use]
    pub fn wire(&self) -> Wire {
        lock(&self.wire).clone()
    }

    /// Different events seen so far.
    #[must_use]
    pub fn events(&self) -> usize {
        lock(&self.wire).arrivals.len()
    }

    /// How many copies of an event came after its first arrival.
    #[must_use]
    pub fn copies(&self, event: &Identity) -> u64 {
        let wire = lock(&self.wire);
        wire.arrivals.get(event).map_or(0, |arrival| arrival.copies)
    }

    /// First arrivals and copies from now on, as they come.
    #[must_use]
    pub fn arrivals(&self) -> broadcast::Receiver<Identity> {
        self.arrivals.subscribe()
    }

    /// Messages seen so far, copies included.
    #[must_use]
    pub fn seen(&self) -> watch::Receiver<u64> {
        self.seen.subscribe()
    }

    fn read(&mut self, broker: &Broker, queue: String) {
        let reader = Reader {
            wire: Arc::clone(&self.wire),
            arrivals: self.arrivals.clone(),
            seen: self.seen.clone(),
            queue,
        };
        let broker = broker.clone();
        self.readers.push(tokio::spawn(async move {
            // The broker may be away for a while; the tap waits for as long as it is held.
            loop {
                reader.follow(&broker).await;
                let _ = broker.connected(Duration::from_secs(1)).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }));
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.readers.iter().for_each(JoinHandle::abort);
    }
}

struct Reader {
    wire: Arc<Mutex<Wire>>,
    arrivals: broadcast::Sender<Identity>,
    seen: watch::Sender<u64>,
    queue: String,
}

impl Reader {
    /// Reads until the subscription ends.
    async fn follow(&self, broker: &Broker) {
        let Ok(mut deliveries) = broker.deliveries(&self.queue, 1000).await else {
            return;
        };
        let ended: Ended = loop {
            match deliveries.batch(LIMITS).await {
                Ok(batch) => {
                    batch
                        .deliveries()
                        .iter()
                        .for_each(|received| self.note(received));
                    if let Err(ended) = batch.ack().await {
                        break ended;
                    }
                }
                Err(ended) => break ended,
            }
        };
        // What was noted and not acknowledged comes again, and says so.
        drop(ended);
    }

    fn note(&self, received: &Received) {
        match received.delivered.read() {
            Ok(event) => {
                lock(&self.wire).note(&self.queue, &event, received.redelivered);
                // Nobody may be listening.
                let _ = self.arrivals.send(event.identity);
            }
            Err(malformed) => {
                let words = format!("{}: {malformed}", received.delivered.routing_key);
                lock(&self.wire).note_malformed(words);
            }
        }
        self.seen.send_modify(|seen| *seen += 1);
    }
}

fn lock(wire: &Mutex<Wire>) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}
