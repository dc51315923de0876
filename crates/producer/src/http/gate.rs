//! The gate: whose request it is, whether there is room for it, and its body, within bounds.

use std::error::Error;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use event::HTTP_BODY_BYTES;
use futures_util::StreamExt as _;
use runtime::database::{DatabaseError, Remedy};

use super::envelope::ForTenant;
use super::{App, headers};
use crate::keys::{self, Caller};
use crate::problem::{Kind, Problem};
use crate::rates::Slot;
use crate::store::ReadError;

/// When to ask again where nothing tells it better.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// So much of a body that is too large is read and dropped, for so long: a client that is cut off
/// while it sends does not see the answer.
const DRAINED_BYTES: usize = 16 * 1024 * 1024;
const DRAINED_FOR: Duration = Duration::from_secs(2);

/// A request that is let in: whose it is, and what it says.
pub(super) struct LetIn {
    pub(super) caller: Caller,
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    /// Taken until the answer is made.
    _slot: Slot,
}

/// Lets a request with a JSON body in.
pub(super) async fn let_in(app: &App, request: Request) -> Result<LetIn, Problem> {
    let (parts, unread) = request.into_parts();
    let caller = caller(app, &parts).await?;
    let body = body(app, &parts.headers, unread).await?;
    let slot = slot(app, &caller)?;
    Ok(LetIn {
        caller,
        parts,
        body,
        _slot: slot,
    })
}

/// Lets a request in whose body, if there is one, means nothing.
pub(super) async fn let_in_without_body(app: &App, request: Request) -> Result<LetIn, Problem> {
    let (parts, _) = request.into_parts();
    let caller = caller(app, &parts).await?;
    let slot = slot(app, &caller)?;
    Ok(LetIn {
        caller,
        parts,
        body: Bytes::new(),
        _slot: slot,
    })
}

/// Whose request it is, and that the tenant's rate allows it.
async fn caller(app: &App, parts: &Parts) -> Result<Caller, Problem> {
    let key = headers::bearer(&parts.headers).ok_or(Problem::new(Kind::Unauthorized))?;
    let key_hash = keys::hash(key);
    let caller = match app.keys.remembered(&key_hash) {
        Some(caller) => caller,
        None => {
            let found = app.keys.look_up(key_hash).await.map_err(nothing_written)?;
            found.ok_or(Problem::new(Kind::Unauthorized))?
        }
    };
    if let Some(tenant) = parts.extensions.get::<ForTenant>() {
        tenant.is(&caller.tenant);
    }
    app.rates.take(&caller).map_err(|wait| {
        let detail = "the tenant's requests come faster than it is allowed";
        Problem::told(Kind::TooManyRequests, detail).retry_after(wait)
    })?;
    Ok(caller)
}

/// Room to work on a request.
fn slot(app: &App, caller: &Caller) -> Result<Slot, Problem> {
    let slot = app.slots.take(&caller.tenant);
    slot.ok_or_else(|| {
        let detail = "too many requests are under way";
        Problem::told(Kind::Unavailable, detail).retry_after(RETRY_AFTER)
    })
}

/// The whole body of a request that carries plain JSON.
async fn body(app: &App, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    headers::only_plain_json(headers)?;
    let told = headers.get(header::CONTENT_LENGTH);
    let told = told.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if told.is_some_and(|length| length > HTTP_BODY_BYTES as u64) {
        drain(body).await;
        return Err(too_large());
    }
    let mut stream = body.into_data_stream();
    let read = async {
        let mut whole = Vec::new();
        while let Some(part) = stream.next().await {
            let part = part.map_err(broken_off)?;
            if whole.len() + part.len() > HTTP_BODY_BYTES {
                return Ok(None);
            }
            whole.extend_from_slice(&part);
        }
        Ok(Some(Bytes::from(whole)))
    };
    let within = app.config.limits.body_timeout;
    match tokio::time::timeout(within, read).await {
        Ok(Ok(Some(whole))) => Ok(whole),
        Ok(Ok(None)) => {
            drain(Body::from_stream(stream)).await;
            Err(too_large())
        }
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(Problem::told(
            Kind::SlowRequest,
            format!("the body was not complete within {within:?}"),
        )),
    }
}

async fn drain(body: Body) {
    // Whatever comes of it, the answer is the same.
    let _ = tokio::time::timeout(DRAINED_FOR, read_and_drop(body)).await;
}

async fn read_and_drop(body: Body) {
    let mut stream = body.into_data_stream();
    let mut left = DRAINED_BYTES;
    while let Some(Ok(part)) = stream.next().await {
        match left.checked_sub(part.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

fn too_large() -> Problem {
    let detail = format!("the limit is {HTTP_BODY_BYTES} bytes");
    Problem::told(Kind::TooLarge, detail)
}

fn broken_off(error: impl Error) -> Problem {
    tracing::debug!(%error, "a body broke off");
    Problem::told(Kind::BadRequest, "the body broke off")
}

/// A failure after which it is certain that nothing was written.
pub(super) fn nothing_written(error: DatabaseError) -> Problem {
    match error.remedy() {
        Remedy::Again | Remedy::Wait | Remedy::Look => {
            tracing::warn!(%error, "request refused");
            let detail = "the database cannot be used now";
            Problem::told(Kind::Unavailable, detail).retry_after(RETRY_AFTER)
        }
        Remedy::OtherData | Remedy::Person => {
            tracing::error!(%error, "request failed");
            Problem::new(Kind::Internal)
        }
    }
}

/// A failure to read.
pub(super) fn unread(app: &App, caller: &Caller, error: ReadError) -> Problem {
    match error {
        ReadError::Unauthorized => {
            app.keys.forget(&caller.key_hash);
            Problem::new(Kind::Unauthorized)
        }
        ReadError::Database(error) => nothing_written(error),
    }
}
