//! The admin port: `/healthz` (alive), `/readyz` (making progress), `/metrics` (Prometheus).

use std::io;
use std::net::SocketAddr;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::measure;
use crate::readiness::Readiness;

/// Why the admin port cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// Something else listens there.
    #[error(
        "the admin port {0} is in use; another process, perhaps of the same kind, has it: choose another one with --admin, or any free one with --admin 127.0.0.1:0"
    )]
    InUse(SocketAddr),
    /// The system refuses it.
    #[error("the admin port {address} cannot be opened")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Metrics cannot be recorded.
    #[error("metrics cannot be recorded")]
    Recorder(#[from] metrics_exporter_prometheus::BuildError),
}

/// An open admin port that serves until it is dropped or the process stops.
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    _server: AbortOnDropHandle<()>,
    _upkeep: AbortOnDropHandle<()>,
}

#[derive(Clone)]
struct Served {
    readiness: Readiness,
    metrics: PrometheusHandle,
    stopping: CancellationToken,
}

impl Admin {
    /// Opens the port and serves it. Once `stopping` is cancelled the process is alive but no
    /// longer ready.
    ///
    /// # Errors
    /// [`AdminError`] names the address.
    pub async fn serve(
        address: SocketAddr,
        readiness: Readiness,
        stopping: CancellationToken,
    ) -> Result<Self, AdminError> {
        let listener = TcpListener::bind(address).await.map_err(|source| {
            match source.kind() == io::ErrorKind::AddrInUse {
                true => AdminError::InUse(address),
                false => AdminError::Bind { address, source },
            }
        })?;
        let address = listener
            .local_addr()
            .map_err(|source| AdminError::Bind { address, source })?;
        let metrics = measure::recorder()?;
        measure::describe(measure::PROCESS);
        let upkeep = measure::upkeep(metrics.clone());
        let router = router(Served {
            readiness,
            metrics,
            stopping,
        });
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the admin port is gone");
            }
        });
        tracing::info!(%address, "admin port open");
        Ok(Self {
            address,
            _server: AbortOnDropHandle::new(server),
            _upkeep: upkeep,
        })
    }

    /// Where it listens, with the port that was picked.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn router(served: Served) -> Router {
    Router::new()
        .route("/healthz", get(async || "alive\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_text))
        .with_state(served)
}

async fn readyz(State(served): State<Served>) -> Response {
    let stopping = served.stopping.is_cancelled();
    let conditions = served.readiness.report();
    let ready = !stopping && conditions.iter().all(|report| report.failing.is_none());
    let listed: Vec<_> = conditions
        .iter()
        .map(|report| {
            json!({
                "name": report.name,
                "holds": report.failing.is_none(),
                "reason": report.failing,
                "since_seconds": report.since.as_secs(),
            })
        })
        .collect();
    let status = match ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let body = json!({ "ready": ready, "stopping": stopping, "conditions": listed });
    (status, Json(body)).into_response()
}

async fn metrics_text(State(served): State<Served>) -> Response {
    let kind = (
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    );
    ([kind], served.metrics.render()).into_response()
}
