//! What is scraped, alerted on and drawn is what the processes measure.

use std::collections::BTreeSet;

use runtime::measure::{Kind, Metric};

use crate::consuming::Stage;
use crate::relaying;

const ALERTS: &str = include_str!("../deploy/prometheus/alerts.yml");
const DASHBOARD: &str = include_str!("../deploy/grafana/ticketflow.json");

const DOCUMENT: &str = include_str!("../docs/METRICS.md");

/// Each table of `docs/METRICS.md` under its heading.
const TABLES: [(&str, &[Metric]); 5] = [
    ("Every process", runtime::measure::PROCESS),
    ("Producer", producer::METRICS),
    ("Relay", relay::METRICS),
    ("Consumer", consumer::METRICS),
    (
        "Consumer: effects outside the database",
        outside::measures::METRICS,
    ),
];

/// What the name of each of our metrics begins with.
const OURS: [&str; 4] = ["producer_", "relay_", "consumer_", "ticketflow_"];

fn metrics() -> impl Iterator<Item = &'static Metric> {
    TABLES.into_iter().flat_map(|(_, table)| table)
}

/// Whether the name of a series is this metric's, or that of a part of it.
fn is_of(name: &str, metric: &Metric) -> bool {
    let part = name.strip_prefix(metric.name);
    let is_histogram = metric.kind == Kind::Histogram;
    part == Some("") || is_histogram && matches!(part, Some("_bucket" | "_sum" | "_count"))
}

#[test]
fn the_document_lists_what_is_measured() {
    let (above, _) = DOCUMENT.split_once("## ").expect("a heading");
    let mut wanted = above.to_owned();
    for (heading, metrics) in TABLES {
        let table = runtime::measure::table(metrics);
        wanted.push_str(&format!("## {heading}\n\n{table}\n"));
    }
    let wanted = wanted.trim_end();
    assert!(
        DOCUMENT.trim_end() == wanted,
        "docs/METRICS.md is not what is measured; it has to be:\n\n{wanted}"
    );
}

/// Every name in a text that looks like one of ours.
fn named(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    text.split(|letter| !is_part(letter))
        .filter(|word| OURS.iter().any(|prefix| word.starts_with(prefix)))
        .collect()
}

fn unknown(text: &str) -> Vec<&str> {
    let is_known = |word: &&str| metrics().any(|metric| is_of(word, metric));
    named(text)
        .into_iter()
        .filter(|word| !is_known(word))
        .collect()
}

#[test]
fn alerts_and_dashboard_name_only_what_is_measured() {
    assert!(named(ALERTS).len() > 10 && named(DASHBOARD).len() > 20);
    assert_eq!(unknown(ALERTS), [""; 0]);
    assert_eq!(unknown(DASHBOARD), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_is_in_the_tables_and_the_tables_are_shown() {
    let stage = Stage::new("monitoring").await;
    let urls = (&stage.site.database_url, &stage.site.amqp_url);
    let relay = relaying::Running::start(relaying::config(urls.0, urls.1, &[]));
    let consumer = stage.consumer(&[]).await;
    let record = "select ticketflow.record_event('acme', 'ticket', 'one', 'ticket.other', '{}')";
    stage.run(record).await;
    let audited = "select count(*) from ticketflow.audit_entries";
    stage.until(audited, 1).await;
    let (_, shown) = consumer.get("/metrics").await;
    // Relay and consumer share this process and so its metrics; the producer's are its own tests'.
    let tables = || metrics().filter(|metric| !metric.name.starts_with("producer_"));
    for metric in tables() {
        let is_shown = shown.contains(&format!("# TYPE {} ", metric.name));
        let from_the_start = metric.kind != Kind::Histogram && metric.labels.is_empty();
        assert!(is_shown || !from_the_start, "{} is not shown", metric.name);
    }
    let samples = shown
        .lines()
        .filter(|line| OURS.iter().any(|prefix| line.starts_with(prefix)));
    let mut seen = 0;
    for sample in samples {
        let (series, _) = sample.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let metric = tables().find(|metric| is_of(name, metric));
        let metric = metric.unwrap_or_else(|| panic!("{sample} is in no table"));
        for label in labels.trim_end_matches('}').split("\",") {
            let (label, _) = label.split_once('=').unwrap_or_default();
            let known = metric.labels.contains(&label) || ["", "le"].contains(&label);
            assert!(known, "{sample}: the table does not list {label}");
        }
        seen += 1;
    }
    assert!(seen > 50, "{shown}");
    relay.stop().await;
    consumer.stop().await;
}

#[test]
fn only_histograms_are_asked_for_buckets_and_those_never_for_a_plain_value() {
    for metric in metrics() {
        let asked = |text: &str| DASHBOARD.contains(text) || ALERTS.contains(text);
        let bucket = format!("{}_bucket", metric.name);
        if metric.kind == Kind::Histogram {
            for after in [')', '[', '{', ' '] {
                let plain = format!("{}{after}", metric.name);
                assert!(!asked(&plain), "{plain}");
            }
        } else {
            assert!(!asked(&bucket), "{bucket}");
        }
    }
}

#[test]
fn names_follow_the_rule_and_are_used_once() {
    let mut seen = BTreeSet::new();
    for metric in metrics() {
        let name = metric.name;
        assert!(seen.insert(name), "{name} is declared twice");
        let is_total = name.ends_with("_total");
        assert_eq!(is_total, metric.kind == Kind::Counter, "{name}");
        assert!(metric.help.ends_with('.'), "{name}: {}", metric.help);
    }
}

#[test]
fn every_alert_says_what_to_do() {
    let alerts = ALERTS.matches("- alert:").count();
    assert!(alerts > 10);
    for needed in ["summary:", "action:", "severity:"] {
        assert_eq!(ALERTS.matches(needed).count(), alerts, "{needed}");
    }
}
