//! What an answer means: from status and `Retry-After` to an outcome. No I/O.
//!
//! | status | outcome |
//! |---|---|
//! | 2xx | delivered |
//! | 408, 409, 425, 429 | failed: not taken *now* (409: a request under that key is still under way) |
//! | 401, 403, 404, 405, 407, 410 | refused, and so would any other task be: the endpoint's set-up |
//! | other 4xx | refused: this task's content |
//! | 3xx | refused: a redirect is not followed, it could lead anywhere |
//! | 502, 504 | unknown: a gateway lost the answer of the system behind it |
//! | other 5xx, anything else | failed |

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::{Knowledge, Outcome, Whose};

/// So much of what a provider said is kept for the operator.
const TOLD_CHARS: usize = 200;

/// The outcome of a request that was answered. `body` is the beginning of what it said.
pub(super) fn outcome(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: DateTime<Utc>,
) -> Outcome {
    let told = told(status, body);
    let refused = |whose, told| Outcome::Refused { whose, told };
    let failed = |told| Outcome::Failed {
        told,
        retry_after: retry_after(headers, now),
    };
    match status.as_u16() {
        200..=299 => Outcome::Delivered,
        300..=399 => refused(
            Whose::Endpoint,
            format!("{told}; redirects are not followed"),
        ),
        408 | 409 | 425 | 429 => failed(told),
        401 | 403 | 404 | 405 | 407 | 410 => refused(Whose::Endpoint, told),
        400..=499 => refused(Whose::Task, told),
        502 | 504 => Outcome::Unknown { told },
        _ => failed(told),
    }
}

/// What the answer says about a key that was asked for.
pub(super) fn knowledge(status: StatusCode) -> Knowledge {
    match status.as_u16() {
        200 => Knowledge::Taken,
        404 => Knowledge::NotKnown,
        _ => Knowledge::NoAnswer {
            told: format!("asked for the key: status {}", status.as_u16()),
        },
    }
}

fn told(status: StatusCode, body: &[u8]) -> String {
    let said: String = String::from_utf8_lossy(body)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(TOLD_CHARS)
        .collect();
    match said.trim() {
        "" => format!("status {}", status.as_u16()),
        said => format!("status {}: {said}", status.as_u16()),
    }
}

/// Seconds or an HTTP date; a date that has passed is no wait at all.
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let until = DateTime::parse_from_rfc2822(text).ok()?;
    let wait = until.to_utc().signed_duration_since(now);
    Some(wait.to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16) -> Outcome {
        let status = StatusCode::from_u16(status).expect("a status");
        outcome(status, &HeaderMap::new(), b"", Utc::now())
    }

    #[test]
    fn every_status_has_an_outcome() {
        for status in 200..300 {
            assert_eq!(of(status), Outcome::Delivered, "{status}");
        }
        for status in [408, 409, 425, 429, 500, 501, 503, 505, 599] {
            assert!(matches!(of(status), Outcome::Failed { .. }), "{status}");
        }
        for status in [502, 504] {
            assert!(matches!(of(status), Outcome::Unknown { .. }), "{status}");
        }
        for (statuses, wanted) in [
            (
                &[301, 302, 303, 304, 307, 308, 401, 403, 404, 405, 410][..],
                Whose::Endpoint,
            ),
            (&[400, 402, 406, 411, 413, 415, 422, 451][..], Whose::Task),
        ] {
            for status in statuses {
                let Outcome::Refused { whose, .. } = of(*status) else {
                    panic!("{status} is {:?}", of(*status));
                };
                assert_eq!(whose, wanted, "{status}");
            }
        }
    }

    #[test]
    fn only_two_answers_say_anything_of_a_key() {
        for (status, wanted) in [
            (200, Some(Knowledge::Taken)),
            (404, Some(Knowledge::NotKnown)),
        ] {
            assert_eq!(
                Some(knowledge(StatusCode::from_u16(status).expect("one"))),
                wanted
            );
        }
        for status in [202, 204, 301, 401, 410, 429, 500] {
            let known = knowledge(StatusCode::from_u16(status).expect("one"));
            assert!(matches!(known, Knowledge::NoAnswer { .. }), "{status}");
        }
    }

    fn wait(text: &str) -> Option<Duration> {
        let now = DateTime::parse_from_rfc3339("2026-11-30T22:00:00Z").expect("a time");
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, text.parse().expect("a header"));
        retry_after(&headers, now.to_utc())
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(wait("120"), Some(Duration::from_secs(120)));
        assert_eq!(
            wait("Mon, 30 Nov 2026 22:01:30 GMT"),
            Some(Duration::from_secs(90))
        );
        assert_eq!(wait("Mon, 30 Nov 2026 21:00:00 GMT"), Some(Duration::ZERO));
        for nonsense in ["", "soon", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(wait(nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn what_was_said_is_kept_short_and_on_one_line() {
        let said = format!("no\r\n\0{}", "x".repeat(10_000));
        let told = told(StatusCode::BAD_REQUEST, said.as_bytes());
        assert!(
            told.starts_with("status 400: no") && told.len() < 250,
            "{told}"
        );
        assert!(!told.chars().any(char::is_control));
    }
}
