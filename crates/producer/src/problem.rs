//! Errors as the caller sees them: problem details of RFC 9457, by kind.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// The media type of a problem.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// What went wrong, by the last part of its `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    BadRequest,
    Unauthorized,
    NotFound,
    MethodNotAllowed,
    SlowRequest,
    InFlight,
    Stale,
    TooLarge,
    Unsupported,
    Invalid,
    KeyReused,
    PreconditionRequired,
    TooManyRequests,
    Internal,
    OutcomeUnknown,
    Unavailable,
}

impl Kind {
    /// Its status, the last part of its type, and its title.
    const fn described(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::BadRequest => (
                S::BAD_REQUEST,
                "bad-request",
                "The request is not well formed",
            ),
            Self::Unauthorized => (S::UNAUTHORIZED, "unauthorized", "No valid key"),
            Self::NotFound => (S::NOT_FOUND, "not-found", "Not found"),
            Self::MethodNotAllowed => (
                S::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "No such method here",
            ),
            Self::SlowRequest => (
                S::REQUEST_TIMEOUT,
                "slow-request",
                "The body came too slowly",
            ),
            Self::InFlight => (S::CONFLICT, "in-flight", "The same key is in flight"),
            Self::Stale => (S::PRECONDITION_FAILED, "stale-version", "Another version"),
            Self::TooLarge => (S::PAYLOAD_TOO_LARGE, "too-large", "The body is too large"),
            Self::Unsupported => (
                S::UNSUPPORTED_MEDIA_TYPE,
                "unsupported-media-type",
                "Not plain JSON",
            ),
            Self::Invalid => (
                S::UNPROCESSABLE_ENTITY,
                "invalid",
                "The request is not valid",
            ),
            Self::KeyReused => (
                S::UNPROCESSABLE_ENTITY,
                "idempotency-key-reused",
                "The key is another request's",
            ),
            Self::PreconditionRequired => (
                S::PRECONDITION_REQUIRED,
                "precondition-required",
                "If-Match is required",
            ),
            Self::TooManyRequests => (
                S::TOO_MANY_REQUESTS,
                "too-many-requests",
                "Over the tenant's rate",
            ),
            Self::Internal => (
                S::INTERNAL_SERVER_ERROR,
                "internal",
                "A bug or a broken set-up",
            ),
            Self::OutcomeUnknown => (
                S::INTERNAL_SERVER_ERROR,
                "outcome-unknown",
                "Committed or not is not known",
            ),
            Self::Unavailable => (
                S::SERVICE_UNAVAILABLE,
                "unavailable",
                "Nothing was written; try later",
            ),
        }
    }
}

/// One part of a request that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Fault {
    /// A JSON Pointer into the body, e.g. `/payload/0/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pointer: Option<String>,
    /// Or the parameter of the query or path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parameter: Option<String>,
    /// Or the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<&'static str>,
    /// What is wrong with it.
    pub(crate) detail: String,
}

/// A refusal or failure.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    detail: Option<String>,
    faults: Vec<Fault>,
    retry_after: Option<Duration>,
}

/// The body of a problem.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody<'a> {
    /// `urn:ticketflow:problem:` and what went wrong.
    r#type: String,
    /// The same in words.
    title: &'a str,
    /// The status code of the answer.
    status: u16,
    /// What is particular to this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    /// Each part that is wrong.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Fault],
    /// Under which the logs have it; also in `X-Request-Id`.
    request_id: &'a str,
}

impl Problem {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            detail: None,
            faults: Vec::new(),
            retry_after: None,
        }
    }

    /// With what is particular to this request. Nothing of its content.
    pub(crate) fn told(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            detail: Some(detail.into()),
            ..Self::new(kind)
        }
    }

    /// With the parts that are wrong, the first of them as the detail.
    pub(crate) fn of_faults(kind: Kind, faults: Vec<Fault>) -> Self {
        let detail = faults.first().map(|fault| {
            let place = fault
                .pointer
                .as_deref()
                .or(fault.parameter.as_deref())
                .or(fault.header);
            format!("{}: {}", place.unwrap_or("body"), fault.detail)
        });
        Self {
            detail,
            faults,
            ..Self::new(kind)
        }
    }

    pub(crate) fn retry_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..self
        }
    }

    /// All that is wrong, in one line.
    pub(crate) fn reason(&self) -> String {
        let faults = self.faults.iter().map(|fault| {
            let place = fault.pointer.as_deref().filter(|place| !place.is_empty());
            format!("{}: {}", place.unwrap_or("line"), fault.detail)
        });
        faults.collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.kind.described().0
    }

    /// The last part of the type, as metrics and logs have it.
    pub(crate) fn name(&self) -> &'static str {
        self.kind.described().1
    }

    /// The whole answer.
    pub(crate) fn answer(&self, request_id: &str) -> Response {
        let (status, name, title) = self.kind.described();
        let body = ProblemBody {
            r#type: format!("urn:ticketflow:problem:{name}"),
            title,
            status: status.as_u16(),
            detail: self.detail.as_deref(),
            errors: &self.faults,
            request_id,
        };
        // Only text: it cannot fail.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        (status, self.headers(), body).into_response()
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_millis().div_ceil(1000).clamp(1, 3600);
            let seconds = u16::try_from(seconds).unwrap_or(u16::MAX);
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.kind == Kind::Unauthorized {
            let scheme = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        headers
    }
}

impl Fault {
    fn of(detail: impl Into<String>) -> Self {
        Self {
            pointer: None,
            parameter: None,
            header: None,
            detail: detail.into(),
        }
    }

    /// Of a part of the body.
    pub(crate) fn at(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            pointer: Some(pointer.into()),
            ..Self::of(detail)
        }
    }

    /// Of a parameter.
    pub(crate) fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            parameter: Some(name.into()),
            ..Self::of(detail)
        }
    }

    /// Of a header.
    pub(crate) fn header(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            header: Some(name),
            ..Self::of(detail)
        }
    }
}

/// Left to the outermost layer to be written out, which knows the request's id.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}
