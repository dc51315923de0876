//! What a bench prints: a table for people and, last, one line of JSON.

use std::fmt::{self, Display};

use serde_json::{Map, Value};

use crate::statistics::Series;

/// What came out of a bench.
#[derive(Debug)]
pub struct Report {
    name: &'static str,
    head: Vec<String>,
    rows: Vec<[String; 5]>,
    facts: Map<String, Value>,
    faults: Vec<String>,
}

impl Report {
    /// An empty one.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        let mut facts = Map::new();
        facts.insert("name".to_owned(), name.into());
        Self {
            name,
            head: Vec::new(),
            rows: Vec::new(),
            facts,
            faults: Vec::new(),
        }
    }

    /// A line above the table: what was measured on what.
    pub fn note(&mut self, line: impl Into<String>) {
        self.head.push(line.into());
    }

    /// A row of the table: what, its figures, their unit, and what is to be reached if anything.
    pub fn row(&mut self, what: impl Into<String>, series: &Series, unit: &str, reach: &str) {
        let spread = match series.len() {
            0 | 1 => String::new(),
            _ => format!("{} to {}", shown(series.min()), shown(series.max())),
        };
        let median = match series.is_empty() {
            true => "-".to_owned(),
            false => shown(series.median()),
        };
        self.rows.push([
            what.into(),
            median,
            spread,
            unit.to_owned(),
            reach.to_owned(),
        ]);
    }

    /// A field of the JSON line.
    pub fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// A figure of the JSON line, with as many digits as it is worth.
    pub fn figure(&mut self, name: &str, value: f64) {
        self.fact(name, (value * 1000.0).round() / 1000.0);
    }

    /// Something that must never be: the bench fails.
    pub fn fault(&mut self, what: impl Into<String>) {
        self.faults.push(what.into());
    }

    /// Whether nothing was lost and everything in order.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Three or four digits that mean something.
fn shown(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => grouped(value.round()),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits.as_str()), |rest| ("-", rest));
    let mut text = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

impl Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "bench {}", self.name)?;
        for line in &self.head {
            writeln!(formatter, "  {line}")?;
        }
        let heads = ["", "median", "spread", "unit", "to reach"].map(str::to_owned);
        let all = || std::iter::once(&heads).chain(&self.rows);
        let width = |column: usize| {
            let cells = all().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: [usize; 5] = std::array::from_fn(width);
        for [what, median, spread, unit, reach] in all() {
            let [a, b, c, d, _] = widths;
            let line = format!("  {what:<a$}  {median:>b$}  {spread:>c$}  {unit:<d$}  {reach}");
            writeln!(formatter, "{}", line.trim_end())?;
        }
        for fault in &self.faults {
            writeln!(formatter, "  FAULT: {fault}")?;
        }
        writeln!(formatter, "{}", Value::Object(self.facts.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_one_json_object_and_faults_come_before() {
        let mut report = Report::new("drain");
        report.row(
            "relay",
            &[20_000.0, 1_234_567.0].into_iter().collect(),
            "/s",
            ">= 1",
        );
        report.figure("ratio", 0.912_345);
        report.fault("3 events were lost");
        assert!(!report.is_sound());
        let text = report.to_string();
        assert!(text.contains("20 000 to 1 234 567"), "{text}");
        assert!(text.contains("FAULT: 3 events were lost"));
        let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
        assert_eq!(last["name"], "drain");
        assert_eq!(last["ratio"], 0.912);
    }
}
