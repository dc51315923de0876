//! Text for a terminal: aligned, and without anything that a tenant could make it do.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use serde_json::{Map, Value};

use crate::listing::Listing;

/// Wider cells are cut: the whole value is in `--json`.
const WIDEST: usize = 110;

/// Rows under a title, each column as wide as its widest cell.
pub(crate) fn table(title: &str, listing: &Listing) -> String {
    let mut lines: Vec<Vec<String>> = vec![listing.columns.clone()];
    lines.extend(listing.rows.iter().map(|row| {
        let cells = listing.columns.iter().map(|column| cut(&cell(row, column)));
        cells.collect()
    }));
    let widths: Vec<usize> = (0..listing.columns.len())
        .map(|index| {
            lines
                .iter()
                .map(|line| width(&line[index]))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = match title {
        "" => String::new(),
        title => format!("{title}:\n"),
    };
    for line in lines {
        let padded: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, wide)| format!("{cell}{}", " ".repeat(wide - width(cell))))
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// One row, a line for each column.
pub(crate) fn card(listing: &Listing) -> String {
    let mut text = String::new();
    let widest = listing.columns.iter().map(|name| width(name)).max();
    for row in &listing.rows {
        for column in &listing.columns {
            let gap = " ".repeat(widest.unwrap_or(0) + 2 - width(column));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{column}{gap}{}", cell(row, column));
        }
    }
    text
}

/// On stdout. That the reader has gone away (`| head`) is no failure.
pub(crate) fn say(text: &str) -> io::Result<()> {
    say_bytes(text.as_bytes())
}

/// On stdout, whatever they are.
pub(crate) fn say_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// On stderr.
pub(crate) fn complain(text: &str) {
    // Nowhere is left to say that stderr is closed.
    let _ = writeln!(io::stderr(), "ticketflow: {}", safe(text));
}

/// Without control characters, which a terminal would obey. Lines stay lines.
pub(crate) fn safe(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '\n' => letter,
            letter if letter.is_control() => '\u{fffd}',
            letter => letter,
        })
        .collect()
}

fn cell(row: &Map<String, Value>, column: &str) -> String {
    let text = match row.get(column) {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::String(text)) => shown_time(text).unwrap_or_else(|| text.clone()),
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            items.join(", ")
        }
        Some(other @ (Value::Number(_) | Value::Array(_) | Value::Object(_))) => other.to_string(),
    };
    safe(&text).replace('\n', " ")
}

/// A time to the second; the microseconds are in `--json`.
fn shown_time(text: &str) -> Option<String> {
    let is_time = text.len() == "2026-01-01T00:00:00.000000Z".len() && text.ends_with('Z');
    let time = chrono::DateTime::parse_from_rfc3339(text).ok()?;
    is_time.then(|| time.format("%F %TZ").to_string())
}

fn cut(text: &str) -> String {
    if width(text) <= WIDEST {
        return text.to_owned();
    }
    let kept: String = text.chars().take(WIDEST - 1).collect();
    format!("{kept}…")
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(value: &Value) -> Listing {
        let row = json!({ "tenant": "acme", "value": value });
        Listing {
            columns: vec!["tenant".to_owned(), "value".to_owned()],
            rows: row.as_object().cloned().into_iter().collect(),
        }
    }

    #[test]
    fn columns_are_aligned_and_wide_cells_cut() {
        let text = table("parked", &listing(&json!("x".repeat(200))));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0..2], ["parked:", "tenant  value"]);
        assert!(
            lines[2].starts_with("acme    xxx") && lines[2].ends_with('…'),
            "{text}"
        );
    }

    #[test]
    fn a_tenant_cannot_write_to_the_terminal() {
        let text = table("", &listing(&json!("a\u{1b}[2J\nb\u{9b}c")));
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{9b}'),
            "{text:?}"
        );
        assert_eq!(text.lines().count(), 2, "{text:?}");
    }

    #[test]
    fn times_are_shown_to_the_second() {
        let text = card(&listing(&json!("2026-11-30T21:57:37.123456Z")));
        assert!(text.contains("value   2026-11-30 21:57:37Z"), "{text}");
    }
}
