//! A TCP proxy in this process that breaks the link between a client and a server.
//!
//! Faults hold for a direction or both, for connections that are open and those that come, until
//! [`FaultProxy::restore`]. A [`Trap`] waits for the wire to show something (the n-th COMMIT, the
//! n-th publish) and breaks the link just there.

mod link;
mod trap;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::SandboxError;
use link::Link;
pub use trap::{Then, Trap};
use trap::{TrapSlot, TrapState};

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// What happens to bytes on their way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Swallowed; the connection stays open.
    pub(crate) swallow: bool,
    /// Held for so long before they go on.
    pub(crate) delay: Duration,
    /// Sent in segments of so many bytes; 0 is as they come.
    pub(crate) segment_bytes: usize,
}

/// The faults of the moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) to_server: Fault,
    pub(crate) to_client: Fault,
    /// New connections are closed at once.
    pub(crate) refuse: bool,
    /// Connections of an earlier epoch are closed.
    pub(crate) epoch: u64,
}

impl Faults {
    pub(crate) fn towards(&self, direction: Direction) -> Fault {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }

    fn each(&mut self, only: Option<Direction>, change: impl Fn(&mut Fault)) {
        if only != Some(Direction::ToClient) {
            change(&mut self.to_server);
        }
        if only != Some(Direction::ToServer) {
            change(&mut self.to_client);
        }
    }
}

/// Listens on a loopback port and forwards to a server, faithfully until told otherwise. Ends with
/// all its connections when dropped.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    faults: watch::Sender<Faults>,
    trap: TrapSlot,
    acceptor: JoinHandle<()>,
}

impl FaultProxy {
    /// Starts one in front of a loopback port, on the current runtime.
    ///
    /// # Errors
    /// [`SandboxError::Io`] if no port can be listened on.
    pub async fn start(target: u16) -> Result<Self, SandboxError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(SandboxError::io("listen for the proxy"))?;
        let port = listener
            .local_addr()
            .map_err(SandboxError::io("read the proxy's port"))?
            .port();
        let faults = watch::Sender::new(Faults::default());
        let trap = TrapSlot::default();
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, target));
        let acceptor = tokio::spawn(accept(listener, target, faults.clone(), Arc::clone(&trap)));
        Ok(Self {
            port,
            faults,
            trap,
            acceptor,
        })
    }

    /// Where clients connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts every connection with a reset and refuses new ones until [`FaultProxy::restore`].
    pub fn cut(&self) {
        self.faults.send_modify(|faults| {
            faults.refuse = true;
            faults.epoch += 1;
        });
    }

    /// Cuts every connection that is open now; new ones are served.
    pub fn cut_once(&self) {
        self.faults.send_modify(|faults| faults.epoch += 1);
    }

    /// Swallows every byte both ways; connections stay open, new ones are accepted.
    pub fn blackhole(&self) {
        self.change(None, |fault| fault.swallow = true);
    }

    /// Swallows every byte one way.
    pub fn blackhole_one_way(&self, direction: Direction) {
        self.change(Some(direction), |fault| fault.swallow = true);
    }

    /// Holds everything for so long, both ways.
    pub fn delay(&self, delay: Duration) {
        self.change(None, |fault| fault.delay = delay);
    }

    /// Holds everything for so long, one way.
    pub fn delay_one_way(&self, direction: Direction, delay: Duration) {
        self.change(Some(direction), |fault| fault.delay = delay);
    }

    /// Sends everything in segments of so many bytes, both ways.
    pub fn slice(&self, segment_bytes: usize) {
        self.change(None, |fault| fault.segment_bytes = segment_bytes);
    }

    /// Ends all faults and disarms the trap. A connection that lost bytes to a black hole is of
    /// no use any more and is cut; new ones are served.
    pub fn restore(&self) {
        self.trap.disarm();
        self.faults.send_modify(|faults| {
            let lost = faults.to_server.swallow || faults.to_client.swallow;
            *faults = Faults {
                epoch: faults.epoch + u64::from(lost),
                ..Faults::default()
            };
        });
    }

    /// Waits for `pattern` to pass `direction` for the `nth` time (counted from now, over all
    /// connections) and breaks that connection as `then` says. One trap at a time: a new one
    /// takes the place of the last.
    #[must_use]
    pub fn trap(&self, direction: Direction, pattern: &[u8], nth: usize, then: Then) -> Trap {
        self.trap.arm(TrapState::new(direction, pattern, nth, then))
    }

    /// Lets the next `COMMIT` of a database session through and loses its answer.
    #[must_use]
    pub fn drop_answer_to_commit(&self) -> Trap {
        self.trap(Direction::ToServer, b"COMMIT", 1, Then::DropAnswer)
    }

    fn change(&self, only: Option<Direction>, change: impl Fn(&mut Fault)) {
        self.faults.send_modify(|faults| faults.each(only, change));
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.cut();
    }
}

async fn accept(
    listener: TcpListener,
    target: SocketAddr,
    faults: watch::Sender<Faults>,
    trap: TrapSlot,
) {
    while let Ok((client, _)) = listener.accept().await {
        let seen = *faults.borrow();
        if seen.refuse {
            link::reset(&client);
            continue;
        }
        let (faults, trap) = (faults.subscribe(), Arc::clone(&trap));
        tokio::spawn(async move {
            match TcpStream::connect(target).await {
                Ok(server) => {
                    let link = Link::new(faults, trap, seen.epoch);
                    link.run(client, server).await;
                }
                Err(_) => link::reset(&client),
            }
        });
    }
}
