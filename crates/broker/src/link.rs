//! Keeping a connection up: when to try, what to say about it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use lapin::Event;
use secrecy::ExposeSecret;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::address::{Address, InvalidAddress};
use crate::error::BrokerError;
use crate::line::Line;
use crate::options::ConnectOptions;

/// lapin tells of a lost connection by an event; looking as well costs nothing and misses none.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the link to the broker is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkState {
    /// Not up yet, since the start.
    Connecting,
    /// Up.
    Connected,
    /// Up, and the broker takes nothing: it is short of memory or disk.
    Blocked {
        /// The broker's words.
        reason: String,
    },
    /// Lost, or never there. Attempts go on.
    Down {
        /// Since when.
        since: Instant,
        /// Why the last attempt failed, or the connection was lost.
        error: String,
        /// Whether somebody has to change something first; attempts are rare then.
        permanent: bool,
    },
}

impl LinkState {
    /// Whether messages can be published now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        match self {
            Self::Connected => true,
            Self::Connecting | Self::Blocked { .. } | Self::Down { .. } => false,
        }
    }

    /// Why nothing can be published, in words.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        match self {
            Self::Connected => None,
            Self::Connecting => Some("connecting".to_owned()),
            Self::Blocked { reason } => Some(format!("blocked by the broker: {reason}")),
            Self::Down { error, .. } => Some(error.clone()),
        }
    }
}

/// What the supervisor and its users share.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) options: ConnectOptions,
    address: Address,
    line: Mutex<Option<Arc<Line>>>,
    state: watch::Sender<LinkState>,
}

impl Link {
    pub(crate) fn new(options: ConnectOptions) -> Result<Self, InvalidAddress> {
        Ok(Self {
            address: Address::parse(options.url.expose_secret())?,
            options,
            line: Mutex::new(None),
            state: watch::Sender::new(LinkState::Connecting),
        })
    }

    pub(crate) fn state(&self) -> watch::Receiver<LinkState> {
        self.state.subscribe()
    }

    /// The connection, if it is up.
    pub(crate) fn line(&self) -> Result<Arc<Line>, BrokerError> {
        // Let go of before `away` looks again: a second look during the first waits for ever if a
        // change of the state waits in between.
        let obstacle = self.state.borrow().obstacle();
        if let Some(obstacle) = obstacle {
            return Err(self.away(obstacle));
        }
        let line = self
            .line
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        line.filter(|line| line.is_up())
            .ok_or_else(|| BrokerError::Unavailable("the connection was lost".to_owned()))
    }

    fn away(&self, obstacle: String) -> BrokerError {
        match &*self.state.borrow() {
            LinkState::Down {
                permanent: true, ..
            } => BrokerError::Denied(obstacle),
            LinkState::Down { .. }
            | LinkState::Connecting
            | LinkState::Connected
            | LinkState::Blocked { .. } => BrokerError::Unavailable(obstacle),
        }
    }

    /// One attempt, with the URL and the certificates as they are on disk now.
    pub(crate) async fn connect(&self) -> Result<Line, BrokerError> {
        let address = match &self.options.url_file {
            Some(path) => read_address(path).await?,
            None => self.address.clone(),
        };
        let ca_file = self.options.ca_file.as_ref().or(address.ca_file.as_ref());
        let trusted = match ca_file {
            Some(path) => Some(read(path, "the file of trusted certificates").await?),
            None => None,
        };
        Line::connect(address.uri, trusted, &self.options).await
    }

    /// Runs until it is told to stop.
    pub(crate) async fn supervise(self: Arc<Self>, stop: CancellationToken) {
        let stopped = stop.cancelled_owned();
        tokio::pin!(stopped);
        tokio::select! {
            biased;
            () = &mut stopped => {}
            () = self.keep_up() => {}
        }
        let line = self.take_line();
        // Asked for, so nothing for the log.
        self.change(&LinkState::Down {
            since: Instant::now(),
            error: "closed".to_owned(),
            permanent: false,
        });
        if let Some(line) = line {
            line.close().await;
        }
    }

    async fn keep_up(&self) {
        let mut failures = 0_u32;
        loop {
            match self.connect().await {
                Ok(line) => {
                    let up_since = Instant::now();
                    let error = self.serve(line).await;
                    self.down(&error);
                    // A connection that dies young counts as a failure to connect.
                    let lasted = up_since.elapsed() > self.options.retry.most;
                    failures = if lasted {
                        1
                    } else {
                        failures.saturating_add(1)
                    };
                }
                Err(error) => {
                    self.down(&error);
                    failures = failures.saturating_add(1);
                }
            }
            let denied = matches!(
                &*self.state.borrow(),
                LinkState::Down {
                    permanent: true,
                    ..
                }
            );
            tokio::time::sleep(self.options.retry.wait(failures, denied)).await;
        }
    }

    /// Watches a connection until it is lost, and says why.
    async fn serve(&self, line: Line) -> BrokerError {
        // The one listener: lapin's events are a queue, and a second one would take its share.
        let mut events = Box::pin(line.connection.events_listener());
        let line = Arc::new(line);
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = Some(line.clone());
        self.enter(LinkState::Connected);
        let mut last = BrokerError::Unavailable("the connection was lost".to_owned());
        loop {
            let event = tokio::time::timeout(LOOK_EVERY, events.next()).await;
            match event {
                Ok(Some(Event::ConnectionBlocked(reason))) => {
                    self.enter(LinkState::Blocked { reason });
                }
                Ok(Some(Event::ConnectionUnblocked)) => self.enter(LinkState::Connected),
                // Channels that close report here too; only a lost connection ends the watch.
                Ok(Some(Event::Error(error))) => last = BrokerError::at_connect(&error),
                Ok(Some(_)) | Err(_) => {}
                Ok(None) => tokio::time::sleep(LOOK_EVERY).await,
            }
            if !line.is_up() {
                self.take_line();
                return last;
            }
        }
    }

    fn take_line(&self) -> Option<Arc<Line>> {
        self.line
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn down(&self, error: &BrokerError) {
        let since = match &*self.state.borrow() {
            LinkState::Down { since, .. } => *since,
            LinkState::Connecting | LinkState::Connected | LinkState::Blocked { .. } => {
                Instant::now()
            }
        };
        self.enter(LinkState::Down {
            since,
            error: error.words(),
            permanent: error.is_permanent(),
        });
    }

    /// Changes the state. Whether it is another kind of state than before.
    fn change(&self, state: &LinkState) -> bool {
        let mut changed = false;
        self.state.send_if_modified(|current| {
            changed = kind(current) != kind(state);
            std::mem::replace(current, state.clone()) != *state
        });
        changed
    }

    /// Changes the state, and logs it if it is another kind of state than before.
    fn enter(&self, state: LinkState) {
        if !self.change(&state) {
            return;
        }
        let name = self.options.name.as_str();
        match &state {
            LinkState::Connecting | LinkState::Connected => {
                tracing::info!(broker.link = name, "the broker is connected");
            }
            LinkState::Blocked { reason } => {
                tracing::warn!(broker.link = name, reason, "the broker takes no messages");
            }
            LinkState::Down {
                error,
                permanent: false,
                ..
            } => {
                tracing::warn!(
                    broker.link = name,
                    error,
                    "the broker is away, trying again"
                );
            }
            LinkState::Down { error, .. } => {
                tracing::error!(broker.link = name, error, "the broker does not let us in");
            }
        }
    }
}

/// The part of a state whose change is worth a line in the log.
fn kind(state: &LinkState) -> (u8, bool) {
    match state {
        LinkState::Connecting => (0, false),
        LinkState::Connected => (1, false),
        LinkState::Blocked { .. } => (2, false),
        LinkState::Down { permanent, .. } => (3, *permanent),
    }
}

async fn read_address(path: &Path) -> Result<Address, BrokerError> {
    let text = read(path, "the file of the broker's URL").await?;
    let line = text.lines().next().unwrap_or_default().trim();
    Address::parse(line).map_err(|error| {
        let shown = path.display();
        BrokerError::Denied(format!(
            "the broker's URL in {shown} cannot be used: {error}"
        ))
    })
}

async fn read(path: &Path, what: &str) -> Result<String, BrokerError> {
    tokio::fs::read_to_string(path).await.map_err(|error| {
        BrokerError::Denied(format!("{what} {} cannot be read: {error}", path.display()))
    })
}
