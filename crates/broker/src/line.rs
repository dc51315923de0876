//! One connection and the plug that cuts it.
//!
//! lapin has no time-out of its own for connecting, and cannot be closed while the broker blocks
//! it: its thread then waits for a silent peer for ever. So the socket is kept here as well, and
//! shutting it down ends that thread whatever state it is in.

use std::future::Future;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_rs::Tokio;
use lapin::tcp::OwnedTLSConfig;
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{AsyncTcpStream, Connection, ConnectionProperties, ErrorKind};

use crate::error::BrokerError;
use crate::guard::{self, Guard};
use crate::options::ConnectOptions;

/// The most time a graceful close gets: nothing depends on it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The socket below a connection.
#[derive(Debug, Clone, Default)]
struct Plug(Arc<Mutex<Option<TcpStream>>>);

impl Plug {
    fn hold(&self, socket: &impl AsFd) -> std::io::Result<()> {
        let socket = TcpStream::from(socket.as_fd().try_clone_to_owned()?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
        Ok(())
    }

    fn pull(&self) {
        if let Some(socket) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // It may be gone already, which is what is wanted.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// A connection that is up, or was.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) connection: Connection,
    plug: Plug,
}

impl Line {
    /// Connects within the time-out for connecting, TLS and handshake included.
    pub(crate) async fn connect(
        mut uri: AMQPUri,
        tls: Option<String>,
        options: &ConnectOptions,
    ) -> Result<Self, BrokerError> {
        let within = uri
            .query
            .connection_timeout
            .take()
            .map_or(options.connect_timeout, Duration::from_millis);
        let plug = Plug::default();
        let connecting = async {
            let found = resolve(&uri).await?;
            open(uri, found, tls, plug.clone(), &options.name).await
        };
        match tokio::time::timeout(within, connecting).await {
            Ok(Ok(connection)) => Ok(Self { connection, plug }),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                plug.pull();
                Err(timed_out("connecting", within))
            }
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.connection.status().connected()
    }

    /// Hangs up, since no channel opens: the connection is of no use, though its heartbeats may go
    /// on: so it was seen with RabbitMQ 3.10 after a queue had been deleted under load. One that is
    /// blocked waits by design, and is let be.
    pub(crate) fn give_up(&self) {
        if !self.connection.status().blocked() {
            self.plug.pull();
        }
    }

    /// Says goodbye if the broker listens, and hangs up.
    pub(crate) async fn close(&self) {
        if self.is_up() && !self.connection.status().blocked() {
            let goodbye = self.connection.close(200, "OK".into());
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await;
        }
        self.plug.pull();
    }
}

impl Drop for Line {
    /// lapin closes in the background what nobody uses any more; but not what is blocked.
    fn drop(&mut self) {
        if self.connection.status().blocked() {
            self.plug.pull();
        }
    }
}

async fn resolve(uri: &AMQPUri) -> Result<Vec<SocketAddr>, BrokerError> {
    let place = (uri.authority.host.as_str(), uri.authority.port);
    match tokio::net::lookup_host(place).await {
        Ok(found) => Ok(found.collect()),
        Err(error) => Err(BrokerError::Unavailable(format!(
            "host {:?} is not known: {error}",
            uri.authority.host
        ))),
    }
}

async fn open(
    uri: AMQPUri,
    found: Vec<SocketAddr>,
    tls: Option<String>,
    plug: Plug,
    name: &str,
) -> Result<Connection, BrokerError> {
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    let trust = OwnedTLSConfig {
        identity: None,
        cert_chain: tls,
    };
    let connect = async move |uri: AMQPUri, _| {
        let stream = AsyncTcpStream::connect(&Tokio::current(), found.clone()).await?;
        if let AsyncTcpStream::Plain(plain) = &stream {
            plug.hold(plain.get_ref())?;
        }
        let stream = match uri.scheme {
            AMQPScheme::AMQP => stream,
            AMQPScheme::AMQPS => stream
                .into_tls(&uri.authority.host, trust.as_ref())
                .await
                .map_err(|error| ErrorKind::IOError(Arc::new(error)))?,
        };
        Ok(AsyncTcpStream::Plain(Guard::new(stream)))
    };
    Connection::connector(uri, guard::runtime(), connect, properties)
        .await
        .map_err(|error| BrokerError::at_connect(&error))
}

fn timed_out(doing: &str, within: Duration) -> BrokerError {
    BrokerError::Unavailable(format!("no answer within {within:?} while {doing}"))
}

/// Every call goes through here, so none can hang.
pub(crate) async fn bounded<T>(
    within: Duration,
    doing: &str,
    call: impl Future<Output = lapin::Result<T>>,
) -> Result<T, BrokerError> {
    match tokio::time::timeout(within, call).await {
        Ok(result) => result.map_err(BrokerError::from),
        Err(_) => Err(timed_out(doing, within)),
    }
}
