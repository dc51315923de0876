//! The webhook: one signed POST, one question for a key, nothing that a foreign system could use
//! to make us wait, remember much, or call somebody else.

use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect;
use reqwest::{Client, RequestBuilder, Response, Url};

use super::address::{Forbidden, PublicOnly, is_public};
use super::{Knowledge, Outcome, Provider, Secrets, Whose, answer, body};
use crate::mutant;
use crate::task::Task;

/// Enough of an answer to know what was wrong; the rest is not read, and the connection is closed.
const ANSWER_BYTES: usize = 4096;
/// Stands for the task's id in the URL that is asked for a key.
const KEY: &str = "{task_id}";

/// Where tasks go, and how.
#[derive(Debug)]
pub struct Target {
    /// The URL that takes them.
    pub url: String,
    /// The URL that is asked for a key, with `{task_id}` in it; empty if there is none.
    pub status_url: String,
    /// What requests are signed with.
    pub secrets: Secrets,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a request may take, connecting and answer included.
    pub timeout: Duration,
    /// Whether loopback, private and other non-public addresses may be called, also without TLS.
    pub allow_private: bool,
}

/// Why a webhook cannot be set up like that.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    /// A URL is not one that may be called.
    #[error("{what}: {problem}")]
    Url {
        /// Which of them.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Client(#[source] reqwest::Error),
}

/// Sends tasks to one URL.
#[derive(Debug)]
pub struct Webhook {
    client: Client,
    url: Url,
    status_url: Option<String>,
    secrets: Secrets,
    timeout: Duration,
}

impl Webhook {
    /// Checks the target and prepares a client of its own for it.
    ///
    /// # Errors
    /// [`Invalid`] says what.
    pub fn new(target: Target) -> Result<Self, Invalid> {
        let url = checked("url", &target.url, target.allow_private)?;
        let status_url = (!target.status_url.is_empty()).then_some(target.status_url);
        if let Some(status_url) = &status_url {
            check_status_url(status_url, target.allow_private)?;
        }
        // Only the first call in a process counts; all ask for the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(target.connect_timeout)
            .timeout(target.timeout)
            .redirect(match mutant::is_planted(mutant::FOLLOW_REDIRECTS) {
                true => redirect::Policy::default(),
                false => redirect::Policy::none(),
            })
            // The loop decides what is sent again and when.
            .retry(reqwest::retry::never())
            // A proxy would connect to addresses that nobody has judged.
            .no_proxy()
            .user_agent(concat!("ticketflow/", env!("CARGO_PKG_VERSION")));
        let anywhere = target.allow_private || mutant::is_planted(mutant::NAMES_UNCHECKED);
        let client = match anywhere {
            true => client,
            false => client.dns_resolver(PublicOnly::system()),
        };
        Ok(Self {
            client: client.build().map_err(Invalid::Client)?,
            url,
            status_url,
            secrets: target.secrets,
            timeout: target.timeout,
        })
    }

    async fn post(&self, task: &Task) -> Outcome {
        let body = match body::of(task) {
            Ok(body) => body,
            Err(error) => {
                let told = format!("the body cannot be written: {error}");
                return Outcome::Refused {
                    whose: Whose::Task,
                    told,
                };
            }
        };
        let request = self.signed(self.client.post(self.url.clone()), task, &body);
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        match request.send().await {
            Ok(response) => judged(response, task.now()).await,
            Err(error) => unanswered(&error),
        }
    }

    async fn get(&self, status_url: &str, task: &Task) -> Knowledge {
        let url = status_url.replace(KEY, &task.task_id.to_string());
        let request = self.signed(self.client.get(url), task, b"");
        match request.send().await {
            Ok(response) => answer::knowledge(response.status()),
            Err(error) => Knowledge::NoAnswer {
                told: format!("asked for the key: {}", told(&error)),
            },
        }
    }

    fn signed(&self, request: RequestBuilder, task: &Task, body: &[u8]) -> RequestBuilder {
        let key = match mutant::is_planted(mutant::KEY_PER_TRY) {
            true => format!("{}-{}", task.task_id, task.attempts),
            false => task.task_id.to_string(),
        };
        let seconds = task.now().timestamp();
        request
            .header("webhook-id", &key)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", self.secrets.sign(&key, seconds, body))
            .header("idempotency-key", key)
    }
}

impl Provider for Webhook {
    fn send<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Outcome> {
        Box::pin(self.post(task))
    }

    fn ask<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Knowledge> {
        match &self.status_url {
            Some(status_url) => Box::pin(self.get(status_url, task)),
            None => Box::pin(std::future::ready(Knowledge::CannotBeAsked)),
        }
    }

    fn longest(&self) -> Duration {
        // The question and the request.
        self.timeout * 2
    }
}

/// The status decides. What else is said is for people, and cut short by the time-out.
async fn judged(response: Response, now: DateTime<Utc>) -> Outcome {
    let (status, headers) = (response.status(), response.headers().clone());
    let said = beginning(response).await;
    answer::outcome(status, &headers, &said, now)
}

async fn beginning(mut response: Response) -> Vec<u8> {
    let mut said = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = ANSWER_BYTES - said.len();
        said.extend(chunk.iter().take(room));
        if said.len() == ANSWER_BYTES {
            break;
        }
    }
    said
}

/// A request without an answer: not taken only if no connection came about.
fn unanswered(error: &reqwest::Error) -> Outcome {
    if forbidden(error) {
        return Outcome::Refused {
            whose: Whose::Endpoint,
            told: told(error),
        };
    }
    if error.is_connect() {
        return Outcome::Failed {
            told: told(error),
            retry_after: None,
        };
    }
    Outcome::Unknown { told: told(error) }
}

fn sources<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

fn forbidden(error: &reqwest::Error) -> bool {
    sources(error).any(|error| error.is::<Forbidden>())
}

/// What went wrong, without the URL: its path or query may be a secret.
fn told(error: &reqwest::Error) -> String {
    let class = match () {
        () if error.is_connect() && error.is_timeout() => "no connection in time",
        () if error.is_connect() => "no connection",
        () if error.is_timeout() => "no answer in time",
        () => "no answer",
    };
    let last = sources(error).skip(1).last();
    last.map_or_else(|| class.to_owned(), |last| format!("{class}: {last}"))
}

fn check_status_url(text: &str, allow_private: bool) -> Result<(), Invalid> {
    if !text.contains(KEY) {
        return Err(Invalid::Url {
            what: "status_url",
            problem: format!("{KEY} stands nowhere in it"),
        });
    }
    checked("status_url", &text.replace(KEY, "key"), allow_private).map(drop)
}

/// A URL that may be called. The problem does not show it.
fn checked(what: &'static str, text: &str, allow_private: bool) -> Result<Url, Invalid> {
    let invalid = |problem: String| Invalid::Url { what, problem };
    let url = Url::parse(text).map_err(|error| invalid(format!("not a URL: {error}")))?;
    match url.scheme() {
        "https" => {}
        "http" if allow_private => {}
        other => return Err(invalid(format!("{other} is not https"))),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("user and password do not belong in it".to_owned()));
    }
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    let literal: Option<IpAddr> = literal.parse().ok();
    // The client does not resolve a literal address, so it is judged here, once: it cannot change.
    match literal {
        Some(address) if !allow_private && !is_public(address) => {
            Err(invalid(format!("{address} is not a public address")))
        }
        _ => Ok(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        let error = checked("url", url, false).expect_err(url);
        error.to_string()
    }

    #[test]
    fn urls_that_lead_inside_are_refused() {
        for url in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://127.1/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://169.254.169.254/latest/meta-data",
            "https://[fd00::1]:8443/",
        ] {
            assert!(refused(url).contains("not a public address"), "{url}");
        }
        for url in [
            "http://example.com/",
            "file:///etc/passwd",
            "ftp://example.com/",
            "gopher://x/",
        ] {
            assert!(refused(url).contains("not https"), "{url}");
        }
        assert!(!refused("https://user:hunter2@example.com/").contains("hunter2"));
        assert!(refused("nonsense").contains("not a URL"));
        for url in [
            "https://example.com/hook",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]/",
        ] {
            assert!(checked("url", url, false).is_ok(), "{url}");
        }
        for url in [
            "http://127.0.0.1:8080/",
            "http://localhost/",
            "https://10.0.0.1/",
        ] {
            assert!(checked("url", url, true).is_ok(), "{url}");
        }
    }

    #[test]
    fn a_url_to_ask_has_a_place_for_the_key() {
        assert!(check_status_url("https://example.com/s/{task_id}", false).is_ok());
        assert!(check_status_url("https://example.com/s?id={task_id}", false).is_ok());
        assert!(check_status_url("https://example.com/s", false).is_err());
        assert!(check_status_url("https://127.0.0.1/{task_id}", false).is_err());
    }
}
