//! Values as a person writes them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use event::EventType;

/// Times beyond are none that the database knows, and nobody means them.
const CENTURY: Duration = Duration::from_secs(100 * 31_557_600);

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("not a duration such as 10s: {error}"))?;
    if duration > CENTURY {
        return Err("longer than 100y".to_owned());
    }
    Ok(duration)
}

/// A time, or how long ago it was.
pub(super) fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    let told = "neither a time such as 2026-11-30T12:00:00Z nor a duration such as 2h";
    let ago = duration(text).map_err(|error| format!("{told}: {error}"))?;
    Utc::now()
        .checked_sub_signed(chrono::TimeDelta::from_std(ago).map_err(|_| told.to_owned())?)
        .ok_or_else(|| told.to_owned())
}

pub(super) fn event_id(text: &str) -> Result<uuid::Uuid, String> {
    uuid::Uuid::parse_str(text).map_err(|_| {
        "an event's id is a UUID such as 019ad3c1-7c00-7000-8000-000000000000".to_owned()
    })
}

pub(super) fn days(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration < Duration::from_secs(86_400) {
        return Err("partitions are a day each: at least 1d".to_owned());
    }
    Ok(duration)
}

/// A binding pattern: an event type in which words may be `*` or `#`.
pub(super) fn pattern(text: &str) -> Result<String, String> {
    let word = |word: &str| word == "*" || word == "#" || EventType::parse(word).is_ok();
    let valid = text.len() <= 100 && text.split('.').all(word);
    valid
        .then(|| text.to_owned())
        .ok_or_else(|| "not a pattern such as ticket.# or ticket.created".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_event_types_with_wildcards_for_words() {
        for good in ["#", "ticket.#", "*.created", "ticket.created"] {
            assert_eq!(pattern(good).as_deref(), Ok(good));
        }
        for bad in ["", ".", "ticket.", "Ticket.#", "tick*", "a b"] {
            assert!(pattern(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_moment_is_a_time_or_how_long_ago_it_was() {
        let noon = moment("2026-11-30T12:00:00+02:00").expect("a time");
        assert_eq!(noon.to_rfc3339(), "2026-11-30T10:00:00+00:00");
        let then = moment("2h").expect("a duration");
        assert_eq!((Utc::now() - then).num_minutes(), 120);
        for bad in ["", "yesterday", "2026-11-30", "-2h"] {
            assert!(moment(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn retention_counts_in_days() {
        assert!(days("23h").is_err());
        assert!(days("1d").is_ok());
    }
}
