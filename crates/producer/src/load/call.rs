//! One intent, tried until its outcome is known or patience ends.

use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode};
use runtime::backoff::Backoff;
use serde::Deserialize;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::history::Outcome;

const AGAIN_BASE: Duration = Duration::from_millis(20);
const AGAIN_CAP: Duration = Duration::from_secs(2);

/// What is sent for an intent, the same each time.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) key: String,
    pub(super) idempotency_key: String,
    pub(super) expected_version: Option<i64>,
    pub(super) body: String,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) outcome: Outcome,
    pub(super) status: Option<u16>,
    pub(super) tries: u32,
    pub(super) written: Option<Written>,
}

/// What the producer says it has written.
#[derive(Debug, Deserialize)]
pub(super) struct Written {
    pub(super) ticket_id: Uuid,
    pub(super) version: i64,
    pub(super) event_id: Uuid,
}

/// What one answer means for the intent.
enum Verdict {
    Done(Written),
    /// Nothing was written, by this try or an earlier one.
    Refused,
    /// Nothing was written by this try; another one may succeed.
    Later(Option<Duration>),
    /// Perhaps it was written.
    Perhaps,
}

impl Call {
    /// Sends it until its outcome is known, for as long as `patience`.
    pub(super) async fn until_known(&self, client: &Client, patience: Duration) -> Called {
        let until = Instant::now() + patience;
        let mut backoff = Backoff::new(AGAIN_BASE, AGAIN_CAP);
        let mut called = Called {
            outcome: Outcome::Refused,
            status: None,
            tries: 0,
            written: None,
        };
        loop {
            called.tries += 1;
            let (status, verdict) = self.once(client).await;
            called.status = status.or(called.status);
            let mut wait = backoff.next_delay();
            match verdict {
                Verdict::Done(written) => {
                    called.outcome = Outcome::Ok;
                    called.written = Some(written);
                    return called;
                }
                Verdict::Refused => {
                    called.outcome = Outcome::Refused;
                    return called;
                }
                Verdict::Later(asked) => wait = wait.max(asked.unwrap_or_default()),
                Verdict::Perhaps => called.outcome = Outcome::Unknown,
            }
            if Instant::now() + wait >= until {
                return called;
            }
            sleep(wait).await;
        }
    }

    async fn once(&self, client: &Client) -> (Option<u16>, Verdict) {
        let mut request = client
            .request(self.method.clone(), &self.url)
            .bearer_auth(&self.key)
            .header("content-type", "application/json")
            .header("idempotency-key", &self.idempotency_key)
            .body(self.body.clone());
        if let Some(version) = self.expected_version {
            request = request.header("if-match", format!("\"{version}\""));
        }
        match request.send().await {
            // It may have arrived.
            Err(error) if !error.is_connect() => (None, Verdict::Perhaps),
            Err(_) => (None, Verdict::Later(None)),
            Ok(answer) => {
                let status = answer.status();
                (Some(status.as_u16()), judge(status, answer).await)
            }
        }
    }
}

async fn judge(status: StatusCode, answer: Response) -> Verdict {
    match status {
        StatusCode::OK | StatusCode::CREATED => {
            let read = answer.json().await;
            read.map_or(Verdict::Perhaps, Verdict::Done)
        }
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::CONFLICT
        | StatusCode::REQUEST_TIMEOUT => {
            let asked = answer.headers().get("retry-after");
            let seconds = asked.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
            Verdict::Later(seconds.map(Duration::from_secs))
        }
        status if status.is_client_error() => Verdict::Refused,
        _ => Verdict::Perhaps,
    }
}
