//! `R_pub`: raw confirmed publishing of the same messages with the same client.

use std::time::{Duration, Instant};

use broker::{Broker, Encoded, RawPublisher};
use event::Message;
use futures_util::future::try_join_all;

use crate::statistics::{figure, rate};

/// Channels and the window of each.
pub const WAYS: [(usize, usize); 4] = [(1, 64), (1, 512), (4, 64), (4, 512)];

/// How the messages were published fastest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ceiling {
    /// Messages a second of each of [`WAYS`], summed over the rounds.
    sums: [f64; WAYS.len()],
    rounds: u32,
}

impl Ceiling {
    /// Publishes the messages once in each way.
    ///
    /// # Errors
    /// What the broker says.
    pub async fn round(&mut self, broker: &Broker, messages: &[Message]) -> anyhow::Result<()> {
        for (sum, (channels, window)) in self.sums.iter_mut().zip(WAYS) {
            let took = publish(broker, messages, channels, window).await?;
            *sum += rate(u64::try_from(messages.len())?, took);
        }
        self.rounds += 1;
        Ok(())
    }

    /// Messages a second of each of [`WAYS`].
    #[must_use]
    pub fn rates(&self) -> [f64; WAYS.len()] {
        self.sums.map(|sum| sum / figure(self.rounds.max(1).into()))
    }

    /// Messages a second of the fastest way.
    #[must_use]
    pub fn best(&self) -> f64 {
        self.rates().into_iter().fold(0.0, f64::max)
    }
}

async fn publish(
    broker: &Broker,
    messages: &[Message],
    channels: usize,
    window: usize,
) -> anyhow::Result<Duration> {
    let mut lines: Vec<(RawPublisher, Encoded)> = Vec::new();
    for part in messages.chunks(messages.len().div_ceil(channels).max(1)) {
        lines.push((broker.raw_publisher().await?, Encoded::of(part)?));
    }
    let start = Instant::now();
    let tasks = lines.into_iter().map(|(publisher, part)| {
        tokio::spawn(async move { publisher.publish(part, window).await })
    });
    for published in try_join_all(tasks).await? {
        published?;
    }
    Ok(start.elapsed())
}
