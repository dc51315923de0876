//! The broker as the rest of the program sees it.

use std::sync::Arc;
use std::time::Duration;

use lapin::Channel;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::address::InvalidAddress;
use crate::error::BrokerError;
use crate::line::bounded;
use crate::link::{Link, LinkState};
use crate::options::ConnectOptions;

/// How often to look whether the link is up, beside being told.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A link to the broker that is kept up for as long as a clone of this is held.
///
/// Publishers and consumers take a link each: the broker blocks a whole connection when it is
/// short of memory, and acknowledgements should still pass.
#[derive(Debug, Clone)]
pub struct Broker {
    pub(crate) link: Arc<Link>,
    held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    supervisor: watch::Receiver<()>,
    stop: CancellationToken,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Broker {
    /// Starts connecting, and goes on for ever: the broker may be away.
    ///
    /// # Errors
    /// [`InvalidAddress`] if the address can never work.
    pub fn start(options: ConnectOptions) -> Result<Self, InvalidAddress> {
        let link = Arc::new(Link::new(options)?);
        let stop = CancellationToken::new();
        let (running, supervisor) = watch::channel(());
        let supervising = link.clone().supervise(stop.clone());
        tokio::spawn(async move {
            supervising.await;
            // The sender is dropped, which is what `close` waits for.
            drop(running);
        });
        Ok(Self {
            link,
            held: Arc::new(Held { supervisor, stop }),
        })
    }

    /// Connects once and hangs up: for checks before a start.
    ///
    /// # Errors
    /// What the broker or the system said.
    pub async fn check(options: ConnectOptions) -> Result<(), BrokerError> {
        let link = Link::new(options).map_err(|error| BrokerError::Denied(error.to_string()))?;
        link.connect().await?.close().await;
        Ok(())
    }

    /// What the link is like, and every change of it.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<LinkState> {
        self.link.state()
    }

    /// Waits until the link is up.
    ///
    /// # Errors
    /// What the link is like when the time is over, or at once if the broker does not let us in.
    pub async fn connected(&self, within: Duration) -> Result<(), BrokerError> {
        let up = async {
            let mut state = self.state();
            loop {
                match self.link.line() {
                    Ok(_) => return Ok(()),
                    Err(error) if error.is_permanent() => return Err(error),
                    // A lost connection may be found out here before the state says so.
                    Err(_) => {
                        let _ = tokio::time::timeout(LOOK_AGAIN, state.changed()).await;
                    }
                }
            }
        };
        match tokio::time::timeout(within, up).await {
            Ok(result) => result,
            Err(_) => self.link.line().map(drop),
        }
    }

    /// Hangs up. Says goodbye first if the broker listens; never waits long for it.
    pub async fn close(self) {
        let mut supervisor = self.held.supervisor.clone();
        self.held.stop.cancel();
        while supervisor.changed().await.is_ok() {}
    }

    /// A channel for one purpose. Whoever gets an error on it drops it.
    pub(crate) async fn channel(&self) -> Result<Channel, BrokerError> {
        let line = self.link.line()?;
        let opening = self.bounded("opening a channel", line.connection.create_channel());
        let opened = opening.await;
        if matches!(opened, Err(BrokerError::Unavailable(_))) {
            line.give_up();
        }
        opened
    }

    pub(crate) async fn bounded<T>(
        &self,
        doing: &str,
        call: impl Future<Output = lapin::Result<T>>,
    ) -> Result<T, BrokerError> {
        bounded(self.link.options.call_timeout, doing, call).await
    }
}
