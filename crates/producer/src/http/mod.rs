//! HTTP: from a request to what is asked of the store, and from its outcome to an answer.

mod envelope;
mod gate;
mod headers;
mod openapi;
mod query;
mod schema;
mod tickets;

use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::get;

use crate::config::Config;
use crate::hint::Hint;
use crate::keys::Keys;
use crate::problem::{Kind, Problem};
use crate::rates::{Rates, Slots};
use crate::store::Store;

pub use openapi::document;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) keys: Keys,
    pub(crate) rates: Rates,
    pub(crate) slots: Slots,
    pub(crate) store: Store,
    pub(crate) hint: Hint,
}

pub(crate) type App = Arc<Shared>;

/// The routes, behind the envelope that every answer goes through.
pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route(tickets::MANY, get(tickets::list).post(tickets::create))
        .route(tickets::ONE, get(tickets::get_one).patch(tickets::update))
        .route(openapi::PATH, get(openapi::serve))
        .fallback(async || Problem::new(Kind::NotFound))
        .method_not_allowed_fallback(async |method: Method| {
            Problem::told(
                Kind::MethodNotAllowed,
                format!("{method} is not one of them"),
            )
        })
        .layer(from_fn_with_state(Arc::clone(&app), envelope::wrap))
        .with_state(app)
}
