//! The headers that decide something, read strictly.

use axum::http::{HeaderMap, HeaderName, header};
use event::TraceContext;

use crate::problem::{Fault, Kind, Problem};

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Longest idempotency key, in bytes.
const KEY_BYTES: usize = 255;

/// The one value of a header, as text.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, &'static str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err("given more than once");
    }
    let text = first.map(|value| value.to_str().map_err(|_| "not visible ASCII"));
    text.transpose()
}

/// The key of `Authorization: Bearer <key>`.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = single(headers, &header::AUTHORIZATION).ok()??;
    let (scheme, key) = value.split_once(' ')?;
    let key = key.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !key.is_empty()).then_some(key)
}

/// The idempotency key, if there is one.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let fault = |detail: &str| {
        let fault = Fault::header("Idempotency-Key", detail);
        Problem::of_faults(Kind::BadRequest, vec![fault])
    };
    match single(headers, &IDEMPOTENCY_KEY).map_err(fault)? {
        None => Ok(None),
        Some(key) if (1..=KEY_BYTES).contains(&key.len()) => Ok(Some(key.to_owned())),
        Some(_) => Err(fault("must have 1 to 255 characters")),
    }
}

/// The versions a change is for; none for any.
pub(super) fn expected_versions(headers: &HeaderMap) -> Result<Option<Vec<i64>>, Problem> {
    let fault =
        |kind, detail: &str| Problem::of_faults(kind, vec![Fault::header("If-Match", detail)]);
    let wrong = |detail: &str| fault(Kind::BadRequest, detail);
    let value = single(headers, &header::IF_MATCH).map_err(wrong)?;
    let Some(value) = value else {
        let detail = "required: the version the change is for, e.g. \"3\"";
        return Err(fault(Kind::PreconditionRequired, detail));
    };
    if value.trim() == "*" {
        return Ok(None);
    }
    let mut versions = Vec::new();
    for tag in value.split(',') {
        let tag = tag.trim();
        // A weak tag matches nothing here (RFC 9110, section 13.1.1).
        let (weak, quoted) = match tag.strip_prefix("W/") {
            Some(rest) => (true, rest),
            None => (false, tag),
        };
        let opaque = quoted
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let Some(opaque) = opaque.filter(|opaque| !opaque.contains('"')) else {
            return Err(wrong(
                "not an entity tag: write the version in quotes, e.g. \"3\"",
            ));
        };
        if !weak {
            versions.extend(version(opaque));
        }
    }
    Ok(Some(versions))
}

/// Only as it was given out: `007` is not the tag of version 7.
fn version(opaque: &str) -> Option<i64> {
    let version: i64 = opaque.parse().ok()?;
    (version.to_string() == opaque).then_some(version)
}

/// The caller's trace context, if it is one; tracing never fails a request.
pub(super) fn trace_context(headers: &HeaderMap) -> TraceContext {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let traceparent = text("traceparent").filter(|value| is_traceparent(value));
    let tracestate = text("tracestate").filter(|value| (1..=512).contains(&value.len()));
    TraceContext {
        traceparent: traceparent.map(str::to_owned),
        // Without its parent it means nothing (W3C Trace Context, section 3.3).
        tracestate: traceparent.and(tracestate).map(str::to_owned),
    }
}

fn is_traceparent(value: &str) -> bool {
    let lower_hex = |part: &str, length: usize| {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        part.len() == length && part.bytes().all(hex)
    };
    let zeros = |part: &str| part.bytes().all(|byte| byte == b'0');
    let parts: Vec<&str> = value.split('-').collect();
    match parts[..] {
        [version, trace, parent, flags, ..] => {
            lower_hex(version, 2)
                && version != "ff"
                && (version != "00" || parts.len() == 4)
                && lower_hex(trace, 32)
                && !zeros(trace)
                && lower_hex(parent, 16)
                && !zeros(parent)
                && lower_hex(flags, 2)
                && value.len() <= 512
        }
        _ => false,
    }
}

/// Refuses what is not plain JSON.
pub(super) fn only_plain_json(headers: &HeaderMap) -> Result<(), Problem> {
    let coded = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
    if coded {
        let fault = Fault::header("Content-Encoding", "compressed bodies are not taken");
        return Err(Problem::of_faults(Kind::Unsupported, vec![fault]));
    }
    let Some(kind) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = kind.to_str().ok().and_then(|kind| kind.split(';').next());
    match essence.map(|essence| essence.trim().to_ascii_lowercase()) {
        Some(essence) if essence == "application/json" || essence.ends_with("+json") => Ok(()),
        _ => {
            let fault = Fault::header("Content-Type", "must be application/json");
            Err(Problem::of_faults(Kind::Unsupported, vec![fault]))
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn with(name: &'static str, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_str(value).expect(value));
        }
        headers
    }

    #[test]
    fn if_match_takes_entity_tags_and_nothing_else() {
        let read = |value: &str| expected_versions(&with("if-match", &[value]));
        for (value, versions) in [
            ("\"3\"", Some(vec![3])),
            ("\"3\", \"4\"", Some(vec![3, 4])),
            ("*", None),
            ("W/\"3\"", Some(vec![])),
            ("\"abc\"", Some(vec![])),
            ("\"03\"", Some(vec![])),
            ("\"99999999999999999999\"", Some(vec![])),
        ] {
            assert_eq!(read(value).expect(value), versions, "{value}");
        }
        for value in ["3", "\"3", "3\"", "\"3\"4\"", "\"3\",", ""] {
            let problem = read(value).expect_err(value);
            assert_eq!(problem.kind, Kind::BadRequest, "{value}");
        }
        let none = expected_versions(&HeaderMap::new()).expect_err("none");
        assert_eq!(none.kind, Kind::PreconditionRequired);
        assert!(expected_versions(&with("if-match", &["\"1\"", "\"2\""])).is_err());
    }

    #[test]
    fn a_key_is_one_bearer_token() {
        let key = |values: &[&str]| bearer(&with("authorization", values)).map(str::to_owned);
        assert_eq!(key(&["Bearer abc"]), Some("abc".to_owned()));
        assert_eq!(key(&["bearer abc"]), Some("abc".to_owned()));
        for values in [
            &["Bearer "][..],
            &["Basic abc"],
            &["abc"],
            &[],
            &["Bearer a", "Bearer b"],
        ] {
            assert_eq!(key(values), None, "{values:?}");
        }
    }

    #[test]
    fn a_trace_context_is_passed_on_or_left_out() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let read = |value: &str| trace_context(&with("traceparent", &[value])).traceparent;
        assert_eq!(read(good).as_deref(), Some(good));
        for bad in [
            "",
            "00",
            &good.to_uppercase(),
            &good.replace("00-4", "ff-4"),
            &format!("{good}-00"),
            &good.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
        let alone = trace_context(&with("tracestate", &["a=1"]));
        assert_eq!(alone, TraceContext::default());
    }
}
