//! The accept loop: so many connections, each with time-outs, and a stop that lets them finish.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::config::Limits;
use crate::metrics;
use crate::patient::Patient;

/// After an accept that failed for want of files, others must get a chance to close some.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An open port.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    limits: Limits,
}

/// Why the port cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Something else listens there.
    #[error("the port {0} is in use; choose another one with --listen")]
    InUse(SocketAddr),
    /// The system refuses it.
    #[error("the port {address} cannot be opened")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

impl Server {
    pub(crate) async fn bind(address: SocketAddr, limits: Limits) -> Result<Self, ListenError> {
        let bound = TcpListener::bind(address).await;
        let listener = bound.map_err(|source| match source.kind() == io::ErrorKind::AddrInUse {
            true => ListenError::InUse(address),
            false => ListenError::Bind { address, source },
        })?;
        Ok(Self { listener, limits })
    }

    /// Where it listens, with the port that was picked.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until stopped; then requests under way are answered, for at most `grace`.
    pub(crate) async fn serve(self, router: Router, shutdown: CancellationToken, grace: Duration) {
        let graceful = GracefulShutdown::new();
        let room = Arc::new(Semaphore::new(self.limits.max_connections));
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = self.accept(&room) => accepted,
            };
            match accepted {
                Ok((stream, permit)) => self.connection(stream, permit, &router, &graceful),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        if tokio::time::timeout(grace, graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!(?grace, "requests were cut off");
        }
    }

    /// Not before there is room: until then the system keeps it waiting.
    async fn accept(&self, room: &Arc<Semaphore>) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
        let permit = Arc::clone(room).acquire_owned().await;
        let permit = permit.map_err(io::Error::other)?;
        let (stream, _) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok((stream, permit))
    }

    fn connection(
        &self,
        stream: TcpStream,
        permit: OwnedSemaphorePermit,
        router: &Router,
        graceful: &GracefulShutdown,
    ) {
        let io = TokioIo::new(Patient::new(stream, self.limits.write_timeout));
        let service = TowerToHyperService::new(router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout)
            .serve_connection(io, service);
        let watched = graceful.watch(connection);
        ::metrics::gauge!(metrics::CONNECTIONS).increment(1.0);
        tokio::spawn(async move {
            if let Err(error) = watched.await {
                tracing::debug!(%error, "a client's connection broke");
            }
            ::metrics::gauge!(metrics::CONNECTIONS).decrement(1.0);
            drop(permit);
        });
    }
}
