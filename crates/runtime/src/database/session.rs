//! A connection outside the pool: for LISTEN, and for renewals that must not wait for a free one.

use std::ops::{Deref, DerefMut};

use tokio::sync::mpsc;
use tokio_postgres::{Client, Notification};
use tokio_util::task::AbortOnDropHandle;

/// More than this many unread wake-ups say nothing new.
const UNREAD: usize = 64;

/// One connection of its own, closed when it is dropped.
#[derive(Debug)]
pub struct Session {
    client: Client,
    notifications: mpsc::Receiver<Notification>,
    _driver: AbortOnDropHandle<()>,
}

impl Session {
    pub(super) fn channel() -> (mpsc::Sender<Notification>, mpsc::Receiver<Notification>) {
        mpsc::channel(UNREAD)
    }

    pub(super) fn new(
        (client, driver): super::connect::Driven,
        notifications: mpsc::Receiver<Notification>,
    ) -> Self {
        Self {
            client,
            notifications,
            _driver: AbortOnDropHandle::new(driver),
        }
    }

    /// The next notification; none once the connection is gone. LISTEN again after that, and look
    /// once: what came in between is lost.
    pub async fn notified(&mut self) -> Option<Notification> {
        self.notifications.recv().await
    }

    /// Drops the notifications that are already here, and says how many.
    pub fn drain(&mut self) -> usize {
        std::iter::from_fn(|| self.notifications.try_recv().ok()).count()
    }
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}
