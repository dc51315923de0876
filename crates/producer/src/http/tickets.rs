//! The calls on tickets.

use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::gate::LetIn;
use super::schema::{ChangeBody, NewTicketBody, PageBody, Status, TicketBody, WrittenBody};
use super::{App, gate, headers, query};
use crate::metrics;
use crate::problem::{Kind, MEDIA_TYPE, Problem, ProblemBody};
use crate::store::{self, Answer, Outcome, WriteError};
use crate::ticket::{Change, NewTicket};

/// All tickets of a tenant.
pub(super) const MANY: &str = "/v1/tickets";
/// One of them.
pub(super) const ONE: &str = "/v1/tickets/{id}";

/// Makes a ticket.
#[utoipa::path(
    post,
    path = MANY,
    request_body = NewTicketBody,
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "The same key and request get the first answer again", min_length = 1, max_length = 255),
    ),
    responses(
        (status = 201, description = "Made", body = WrittenBody, headers(
            ("ETag" = String, description = "The version, in quotes"),
            ("Location" = String, description = "Where it is"),
        )),
        (status = 400, description = "Not JSON, or a header that is not well formed", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 408, description = "The body came too slowly", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 409, description = "The idempotency key is taken by a request still under way", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 413, description = "Over 1 MiB", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 415, description = "Not plain JSON", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 500, description = "A bug; or, of type `outcome-unknown`, the answer to COMMIT was lost", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 401, description = "No valid key", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 422, description = "Not valid; names what", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 429, description = "Over the tenant's rate; `Retry-After` says when", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 503, description = "Nothing was written; `Retry-After`", body = ProblemBody, content_type = MEDIA_TYPE),
    ),
    security(("key" = [])),
)]
pub(super) async fn create(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let let_in = gate::let_in(&app, request).await?;
    let request = write_request(&let_in, Uuid::now_v7())?;
    let ticket = match NewTicket::read(&let_in.body) {
        Ok(ticket) => ticket,
        Err(problem) => return refused(&app, &request, StatusCode::CREATED, problem).await,
    };
    let outcome = app.store.create(&request, &ticket).await;
    written(&app, &request, StatusCode::CREATED, outcome)
}

/// Changes a ticket.
#[utoipa::path(
    patch,
    path = ONE,
    request_body = ChangeBody,
    params(
        ("id" = Uuid, Path, description = "The ticket"),
        ("If-Match" = String, Header, description = "The version the change is for, in quotes", example = "\"1\""),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key and request get the first answer again", min_length = 1, max_length = 255),
    ),
    responses(
        (status = 200, description = "Changed", body = WrittenBody, headers(
            ("ETag" = String, description = "The version, in quotes"),
        )),
        (status = 404, description = "The tenant has no such ticket", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 412, description = "The ticket has another version", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 428, description = "`If-Match` is missing", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 400, description = "Not JSON, or a header that is not well formed", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 408, description = "The body came too slowly", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 409, description = "The idempotency key is taken by a request still under way", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 413, description = "Over 1 MiB", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 415, description = "Not plain JSON", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 500, description = "A bug; or, of type `outcome-unknown`, the answer to COMMIT was lost", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 401, description = "No valid key", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 422, description = "Not valid; names what", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 429, description = "Over the tenant's rate; `Retry-After` says when", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 503, description = "Nothing was written; `Retry-After`", body = ProblemBody, content_type = MEDIA_TYPE),
    ),
    security(("key" = [])),
)]
pub(super) async fn update(
    State(app): State<App>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let let_in = gate::let_in(&app, request).await?;
    let id = ticket_id(&id);
    let request = write_request(&let_in, *id.as_ref().unwrap_or(&Uuid::nil()))?;
    let checked = id.and_then(|_| {
        let expected = headers::expected_versions(&let_in.parts.headers)?;
        Ok((expected, Change::read(&let_in.body)?))
    });
    let (expected, change) = match checked {
        Ok(checked) => checked,
        Err(problem) => return refused(&app, &request, StatusCode::OK, problem).await,
    };
    let outcome = app
        .store
        .update(&request, expected.as_deref(), &change)
        .await;
    written(&app, &request, StatusCode::OK, outcome)
}

/// One ticket.
#[utoipa::path(
    get,
    path = ONE,
    params(("id" = Uuid, Path, description = "The ticket")),
    responses(
        (status = 200, description = "The ticket", body = TicketBody, headers(
            ("ETag" = String, description = "The version, in quotes"),
        )),
        (status = 404, description = "The tenant has no such ticket", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 401, description = "No valid key", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 422, description = "Not valid; names what", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 429, description = "Over the tenant's rate; `Retry-After` says when", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 503, description = "Nothing was written; `Retry-After`", body = ProblemBody, content_type = MEDIA_TYPE),
    ),
    security(("key" = [])),
)]
pub(super) async fn get_one(
    State(app): State<App>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let let_in = gate::let_in_without_body(&app, request).await?;
    let id = ticket_id(&id)?;
    let found = app.store.get(&let_in.caller, id).await;
    let found = found.map_err(|error| gate::unread(&app, &let_in.caller, error))?;
    let found = found.ok_or(Problem::new(Kind::NotFound))?;
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::ETAG, format!("\"{}\"", found.version)),
    ];
    Ok((headers, found.ticket).into_response())
}

/// A page of tickets, newest first.
#[utoipa::path(
    get,
    path = MANY,
    params(
        ("status" = Option<Status>, Query, description = "Only these"),
        ("q" = Option<String>, Query, description = "Words in subject or body, as one would give them to a search engine; a little behind", max_length = 1000),
        ("after" = Option<Uuid>, Query, description = "`next` of the page before"),
        ("limit" = Option<i64>, Query, description = "Most tickets of a page; 50 if not given", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "A page", body = PageBody),
        (status = 401, description = "No valid key", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 422, description = "Not valid; names what", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 429, description = "Over the tenant's rate; `Retry-After` says when", body = ProblemBody, content_type = MEDIA_TYPE),
        (status = 503, description = "Nothing was written; `Retry-After`", body = ProblemBody, content_type = MEDIA_TYPE),
    ),
    security(("key" = [])),
)]
pub(super) async fn list(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let let_in = gate::let_in_without_body(&app, request).await?;
    let query = query::read(let_in.parts.uri.query().unwrap_or_default())?;
    let page = app.store.list(&let_in.caller, &query).await;
    let page = page.map_err(|error| gate::unread(&app, &let_in.caller, error))?;
    let next = page
        .next
        .map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""));
    let body = format!(
        "{{\"tickets\":[{}],\"next\":{next}}}",
        page.tickets.join(",")
    );
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// What is the same for every try: ids are made here, once.
fn write_request(let_in: &LetIn, ticket_id: Uuid) -> Result<store::Request, Problem> {
    let headers = &let_in.parts.headers;
    let key = headers::idempotency_key(headers)?;
    Ok(store::Request {
        caller: let_in.caller.clone(),
        ticket_id,
        event_id: Uuid::now_v7(),
        trace: headers::trace_context(headers),
        idempotency: key.map(|key| (key, request_digest(let_in))),
    })
}

/// What makes two requests the same: method, path, condition and body.
fn request_digest(let_in: &LetIn) -> [u8; 32] {
    let parts = &let_in.parts;
    let mut hash = Sha256::new();
    let condition = parts.headers.get(header::IF_MATCH);
    for part in [
        parts.method.as_str().as_bytes(),
        parts.uri.path().as_bytes(),
        condition.map_or(&b""[..], |value| value.as_bytes()),
        &let_in.body,
    ] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// A refused request, unless its key says that it was accepted once, or that it is another one's.
async fn refused(
    app: &App,
    request: &store::Request,
    success: StatusCode,
    problem: Problem,
) -> Result<Response, Problem> {
    let Some((key, digest)) = &request.idempotency else {
        return Err(problem);
    };
    let known = app.store.known(&request.caller, key, digest).await;
    match known.map_err(|error| gate::unread(app, &request.caller, error))? {
        Some(outcome) => written(app, request, success, Ok(outcome)),
        None => Err(problem),
    }
}

fn written(
    app: &App,
    request: &store::Request,
    success: StatusCode,
    outcome: Result<Outcome, WriteError>,
) -> Result<Response, Problem> {
    match outcome {
        Ok(Outcome::Written { answer, replayed }) => {
            if replayed {
                ::metrics::counter!(metrics::REPLAYED).increment(1);
            } else {
                let change = if success == StatusCode::CREATED {
                    "created"
                } else {
                    "updated"
                };
                ::metrics::counter!(metrics::WRITTEN, "change" => change).increment(1);
                app.hint.committed();
            }
            Ok(success_answer(success, answer))
        }
        Ok(Outcome::Reused) => Err(Problem::new(Kind::KeyReused)),
        Ok(Outcome::InFlight) => {
            let wait = std::time::Duration::from_secs(1);
            Err(Problem::new(Kind::InFlight).retry_after(wait))
        }
        Ok(Outcome::Unauthorized) => {
            app.keys.forget(&request.caller.key_hash);
            Err(Problem::new(Kind::Unauthorized))
        }
        Ok(Outcome::Missing) => Err(Problem::new(Kind::NotFound)),
        Ok(Outcome::Stale) => Err(Problem::told(
            Kind::Stale,
            "read the ticket again and repeat the change with its present version",
        )),
        Err(WriteError::NotWritten(error)) => Err(gate::nothing_written(error)),
        Err(error @ WriteError::Unknown) => {
            tracing::error!(%error, event.id = %request.event_id, "request failed");
            let detail = match request.idempotency {
                Some(_) => "repeat the request with the same Idempotency-Key to find out",
                None => "look for the ticket before you repeat the request",
            };
            Err(Problem::told(Kind::OutcomeUnknown, detail))
        }
    }
}

fn success_answer(status: StatusCode, answer: Answer) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::ETAG, answer.etag),
    ];
    let mut response = (status, headers, answer.body).into_response();
    if status == StatusCode::CREATED
        && let Ok(location) = answer.location.parse()
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// An id in the one form that is given out; anything else names no ticket.
pub(super) fn ticket_id(text: &str) -> Result<Uuid, Problem> {
    let id = Uuid::parse_str(text).ok().filter(|_| text.len() == 36);
    id.ok_or(Problem::new(Kind::NotFound))
}
