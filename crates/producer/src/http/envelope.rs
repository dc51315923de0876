//! What every request gets, whatever becomes of it: an id, an answer, a line in the log, a count.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use event::TenantId;
use futures_util::FutureExt as _;
use uuid::Uuid;

use super::App;
use crate::metrics;
use crate::problem::{Kind, Problem};

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken over from a caller.
const ID_BYTES: usize = 128;

/// What the log and the metrics say of a request: never its query, its headers or its body.
struct Asked {
    id: String,
    method: Method,
    uri: Uri,
    route: Option<MatchedPath>,
    since: Instant,
}

/// The tenant of a request, once it is known, for the log.
#[derive(Debug, Clone, Default)]
pub(super) struct ForTenant(Arc<OnceLock<TenantId>>);

impl ForTenant {
    /// It is this one's.
    pub(super) fn is(&self, tenant: &TenantId) {
        self.0.get_or_init(|| tenant.clone());
    }
}

/// Answers a request through the routes, and sees to the rest.
pub(super) async fn wrap(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let asked = Asked::of(&request);
    let tenant = ForTenant::default();
    request.extensions_mut().insert(tenant.clone());
    // A panic is a bug of one request; it must not look like a lost connection.
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = answered.unwrap_or_else(|_| {
        tracing::error!(request.id = asked.id, "a request made the process panic");
        Problem::new(Kind::Internal).into_response()
    });
    let problem = response.extensions_mut().remove::<Problem>();
    if let Some(problem) = &problem {
        // What a layer below has set, such as Allow, stays.
        let below = std::mem::take(response.headers_mut());
        response = problem.answer(&asked.id);
        for (name, value) in below {
            if let Some(name) = name.filter(|name| name != axum::http::header::CONTENT_LENGTH) {
                response.headers_mut().entry(name).or_insert(value);
            }
        }
    }
    if let Ok(id) = HeaderValue::from_str(&asked.id) {
        response.headers_mut().insert(REQUEST_ID.clone(), id);
    }
    asked.count(&response, problem.as_ref());
    if app.config.access_log {
        asked.log(&response, problem.as_ref(), tenant.0.get());
    }
    response
}

impl Asked {
    fn of(request: &Request) -> Self {
        Self {
            id: request_id(request),
            method: request.method().clone(),
            uri: request.uri().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
            since: Instant::now(),
        }
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("unknown", MatchedPath::as_str)
    }

    fn count(&self, response: &Response, problem: Option<&Problem>) {
        let labels = [
            ("route", self.route().to_owned()),
            ("method", known(&self.method).to_owned()),
            ("status", response.status().as_u16().to_string()),
        ];
        ::metrics::counter!(metrics::REQUESTS, &labels).increment(1);
        let route = [("route", self.route().to_owned())];
        ::metrics::histogram!(metrics::SECONDS, &route).record(self.since.elapsed());
        if let Some(problem) = problem {
            ::metrics::counter!(metrics::REFUSED, "reason" => problem.name()).increment(1);
        }
    }

    fn log(&self, response: &Response, problem: Option<&Problem>, tenant: Option<&TenantId>) {
        let Self { id, method, .. } = self;
        let path = self.uri.path();
        let status = response.status().as_u16();
        let problem = problem.map(Problem::name);
        let tenant = tenant.map(TenantId::as_str);
        let duration_ms = self.since.elapsed().as_secs_f64() * 1e3;
        tracing::info!(
            target: "producer::access",
            { request.id = id, %method, path, status, problem, tenant, duration_ms },
            "request"
        );
    }
}

/// A caller's own id if it is harmless in a log, else a fresh one.
fn request_id(request: &Request) -> String {
    let given = request.headers().get(&REQUEST_ID);
    let given = given.and_then(|value| value.to_str().ok());
    let harmless = |id: &&str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte);
        (1..=ID_BYTES).contains(&id.len()) && id.bytes().all(fits)
    };
    given
        .filter(harmless)
        .map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

/// A caller may make up methods; a metric's labels must stay few.
fn known(method: &Method) -> &str {
    match method.as_str() {
        name @ ("GET" | "POST" | "PATCH" | "PUT" | "DELETE" | "HEAD" | "OPTIONS") => name,
        _ => "other",
    }
}
