//! Making a connection: the URL as it is now, TLS if it asks for it, one time-out around it all.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Connect;
use futures_util::future::{BoxFuture, poll_fn};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, NoTls};
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config, Connection, Notification, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::config::{DatabaseConfig, wants_tls};
use super::error::DatabaseError;
use super::tls;

/// A cancel request that is not through by then never will be.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes connections, re-reading the URL for each: a rotated password needs no restart.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) config: Arc<DatabaseConfig>,
    tls: Option<MakeRustlsConnect>,
}

/// A connection and the task that drives it.
pub(super) type Driven = (Client, JoinHandle<()>);

impl Connector {
    pub(super) fn new(config: DatabaseConfig) -> Result<Self, DatabaseError> {
        let client = config.client().map_err(DatabaseError::set_up)?;
        let tls = match wants_tls(&client) {
            true => Some(tls::connector(config.ca_file.as_deref()).map_err(DatabaseError::set_up)?),
            false => None,
        };
        Ok(Self {
            config: Arc::new(config),
            tls,
        })
    }

    /// A connection listed under `application_name`. What is sent to `notifications` is dropped
    /// when it is full: the driver must never wait for a reader.
    pub(super) async fn connect(
        &self,
        application_name: &str,
        notifications: Option<mpsc::Sender<Notification>>,
    ) -> Result<Driven, DatabaseError> {
        let mut config = self.config.client().map_err(DatabaseError::away)?;
        config.application_name(application_name);
        let within = self.config.connect_timeout;
        let made = tokio::time::timeout(within, self.open(&config, notifications)).await;
        let made = made.map_err(|_| {
            let server = server(&config);
            DatabaseError::away(format!("no connection to {server} within {within:?}"))
        })?;
        made.map_err(|error| DatabaseError::from(error).at(&server(&config)))
    }

    async fn open(
        &self,
        config: &Config,
        notifications: Option<mpsc::Sender<Notification>>,
    ) -> Result<Driven, tokio_postgres::Error> {
        match &self.tls {
            Some(tls) => drive(config, tls.clone(), notifications).await,
            None => drive(config, NoTls, notifications).await,
        }
    }

    /// Asks the server to end what the connection of this token is doing. In the background, since
    /// whoever gave up on it has no more time.
    pub(super) fn cancel(&self, token: CancelToken) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let tls = self.tls.clone();
        runtime.spawn(async move {
            let sent = tokio::time::timeout(CANCEL_TIMEOUT, async {
                match tls {
                    Some(tls) => token.cancel_query(tls).await,
                    None => token.cancel_query(NoTls).await,
                }
            });
            if !matches!(sent.await, Ok(Ok(()))) {
                tracing::debug!("a query could not be cancelled");
            }
        });
    }
}

impl Connect for Connector {
    fn connect(&self, known: &Config) -> BoxFuture<'_, Result<Driven, tokio_postgres::Error>> {
        // A file that cannot be read just now leaves the URL that was known last.
        let config = self.config.client().unwrap_or_else(|problem| {
            tracing::warn!(%problem, "the database's URL is taken from memory");
            known.clone()
        });
        Box::pin(async move { self.open(&config, None).await })
    }
}

/// The servers a connection may go to, for messages.
fn server(config: &Config) -> String {
    let hosts = config.get_hosts().iter().zip(0..);
    let shown = hosts.map(|(host, index)| {
        let port = config.get_ports().get(index).or(config.get_ports().first());
        let port = port.copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => format!("{} (port {port})", path.display()),
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

async fn drive<T>(
    config: &Config,
    tls: T,
    notifications: Option<mpsc::Sender<Notification>>,
) -> Result<Driven, tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    let driver = tokio::spawn(pass_on(connection, notifications));
    Ok((client, driver))
}

async fn pass_on<S>(
    mut connection: Connection<Socket, S>,
    notifications: Option<mpsc::Sender<Notification>>,
) where
    S: tokio_postgres::tls::TlsStream + Unpin,
{
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notification(notification))) => {
                if let Some(sender) = &notifications {
                    // A full channel already wakes its reader.
                    let _ = sender.try_send(notification);
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let error = DatabaseError::from_client(&error);
                tracing::debug!(%error, "a database connection is gone");
                return;
            }
            None => return,
        }
    }
}
