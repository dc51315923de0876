//! The OpenAPI 3.1 document, generated from the calls and their bodies.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::schema::{ChangeBody, NewTicketBody, PageBody, TicketBody, WrittenBody};
use crate::problem::{Fault, ProblemBody};

/// Where the document is.
pub(super) const PATH: &str = "/openapi.json";

/// The producer's calls.
#[derive(OpenApi)]
#[openapi(
    info(title = "TicketFlow", description = "Tickets, each change of which is told as an event."),
    paths(super::tickets::create, super::tickets::update, super::tickets::get_one, super::tickets::list),
    components(schemas(
        NewTicketBody, ChangeBody, TicketBody, WrittenBody, PageBody, ProblemBody, Fault
    )),
    modifiers(&BearerKey),
)]
struct Calls;

struct BearerKey;

impl Modify for BearerKey {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("key", scheme);
    }
}

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    // Made of texts and numbers only: it cannot fail.
    Calls::openapi().to_pretty_json().unwrap_or_default()
});

/// The document as JSON.
#[must_use]
pub fn document() -> &'static str {
    &DOCUMENT
}

pub(super) async fn serve() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document())
}
