//! One batch at a time: taken from the deliveries, given up to acknowledge it.

use std::time::Duration;

use event::Delivered;
use tokio::time::{Instant, timeout_at};

use crate::deliveries::{Deliveries, Ended, Received};

/// How large a batch may become.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// Most deliveries.
    pub deliveries: usize,
    /// Most bytes of their bodies together; a single one may be larger.
    pub bytes: usize,
    /// How long to wait for more after the first one.
    pub linger: Duration,
}

/// Deliveries that are handled together. While it is out, there is no other of its channel, so
/// "acknowledge up to here" covers exactly these.
#[derive(Debug)]
#[must_use = "a batch that is dropped ends its subscription"]
pub struct Batch<'a> {
    deliveries: &'a mut Deliveries,
    received: Vec<Received>,
    acknowledged: bool,
}

impl Deliveries {
    /// Waits for deliveries and takes a batch of them. May be cancelled without losing any.
    ///
    /// # Errors
    /// [`Ended`]: this subscription brings nothing more.
    pub async fn batch(&mut self, limits: BatchLimits) -> Result<Batch<'_>, Ended> {
        if self.waiting().is_empty() {
            self.receive().await?;
        }
        let until = Instant::now() + limits.linger;
        while !self.full(limits) {
            let more = self.receive_ready()
                || matches!(timeout_at(until, self.receive()).await, Ok(Ok(())));
            if !more {
                break;
            }
        }
        Ok(self.take(limits))
    }

    fn full(&mut self, limits: BatchLimits) -> bool {
        let waiting = self.waiting();
        let bytes: usize = waiting.iter().map(|received| received.body().len()).sum();
        waiting.len() >= limits.deliveries || bytes >= limits.bytes
    }

    fn take(&mut self, limits: BatchLimits) -> Batch<'_> {
        let mut received = Vec::new();
        let mut bytes = 0;
        let waiting = self.waiting();
        while let Some(next) = waiting.front() {
            bytes += next.body().len();
            let fits = received.len() < limits.deliveries && bytes <= limits.bytes;
            if !received.is_empty() && !fits {
                break;
            }
            received.extend(waiting.pop_front());
        }
        Batch {
            deliveries: self,
            received,
            acknowledged: false,
        }
    }
}

impl Batch<'_> {
    /// The deliveries, in the order in which they came.
    #[must_use]
    pub fn deliveries(&self) -> &[Received] {
        &self.received
    }

    /// What each of them says of itself, moved out: it is read once, and copying costs more than
    /// that. The deliveries stay, to be acknowledged.
    pub fn take_delivered(&mut self) -> Vec<Delivered> {
        let taken = self.received.iter_mut();
        taken
            .map(|received| std::mem::take(&mut received.delivered))
            .collect()
    }

    /// Acknowledges all of them. Call it when what they brought about is committed.
    ///
    /// # Errors
    /// [`Ended`]: they will be delivered again.
    pub async fn ack(mut self) -> Result<(), Ended> {
        self.acknowledged = true;
        match self.received.last() {
            Some(last) => self.deliveries.ack_up_to(last).await,
            None => Ok(()),
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if !self.acknowledged {
            self.deliveries.abandon();
        }
    }
}
