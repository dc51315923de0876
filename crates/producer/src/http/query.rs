//! The query of a list.

use super::tickets::ticket_id;
use crate::problem::{Fault, Kind, Problem};
use crate::store::Query;
use crate::ticket::STATUSES;

/// Most tickets of a page.
pub(super) const MOST_LISTED: i64 = 200;
/// How many a page has if nothing is asked.
pub(super) const LISTED: i64 = 50;

/// Reads `status`, `q`, `after` and `limit`.
pub(super) fn read(text: &str) -> Result<Query, Problem> {
    let mut query = Query {
        status: None,
        text: None,
        after: None,
        limit: LISTED,
    };
    let mut faults = Vec::new();
    for (name, value) in form_pairs(text) {
        let value = match value {
            Ok(value) => value,
            Err(detail) => {
                faults.push(Fault::parameter(name, detail));
                continue;
            }
        };
        match name.as_str() {
            "status" if STATUSES.contains(&value.as_str()) => query.status = Some(value),
            "status" => faults.push(Fault::parameter(
                "status",
                format!("must be one of {}", STATUSES.join(", ")),
            )),
            "q" if value.is_empty() => {}
            "q" if value.len() <= 1000 => query.text = Some(value),
            "q" => faults.push(Fault::parameter("q", "must have at most 1000 bytes")),
            "after" => match ticket_id(&value) {
                Ok(id) => query.after = Some(id),
                Err(_) => faults.push(Fault::parameter("after", "must be the `next` of a page")),
            },
            "limit" => match value.parse() {
                Ok(limit) if (1..=MOST_LISTED).contains(&limit) => query.limit = limit,
                _ => {
                    let detail = format!("must be 1 to {MOST_LISTED}");
                    faults.push(Fault::parameter("limit", detail));
                }
            },
            _ => faults.push(Fault::parameter(
                name,
                "unknown; there is status, q, after, limit",
            )),
        }
    }
    if faults.is_empty() {
        Ok(query)
    } else {
        Err(Problem::of_faults(Kind::Invalid, faults))
    }
}

/// The pairs of a query. A value that no text column can hold is an error of its pair.
fn form_pairs(text: &str) -> impl Iterator<Item = (String, Result<String, &'static str>)> {
    text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let cut: String = decoded(name).unwrap_or_default().chars().take(80).collect();
        (cut, decoded(value))
    })
}

fn decoded(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let pair = [rest.next(), rest.next()].map(|digit| {
                    let digit = digit.map(char::from)?.to_digit(16)?;
                    u8::try_from(digit).ok()
                });
                match pair {
                    [Some(high), Some(low)] => high << 4 | low,
                    _ => return Err("not percent-encoded"),
                }
            }
            other => other,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8")?;
    if text.contains('\0') {
        return Err("has the character U+0000");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_or_every_wrong_parameter_named() {
        let query = read("status=open&q=a+b%C3%A9&limit=7").expect("a query");
        assert_eq!(query.status.as_deref(), Some("open"));
        assert_eq!(query.text.as_deref(), Some("a bé"));
        assert_eq!((query.limit, query.after), (7, None));
        assert_eq!(read("").expect("nothing").limit, LISTED);
        for wrong in [
            "status=Open",
            "limit=0",
            "limit=201",
            "limit=x",
            "after=1",
            "q=%00",
            "q=%ff",
            "q=%2",
            "stauts=open",
        ] {
            let problem = read(wrong).expect_err(wrong);
            assert_eq!(problem.kind, Kind::Invalid, "{wrong}");
        }
    }
}
