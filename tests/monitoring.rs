//! What is scraped, alerted on and drawn is what the processes measure.

use std::collections::BTreeSet;

use runtime::measure::{Kind, Metric};

const ALERTS: &str = include_str!("../deploy/prometheus/alerts.yml");
const DASHBOARD: &str = include_str!("../deploy/grafana/ticketflow.json");

fn metrics() -> Vec<&'static Metric> {
    let tables = [
        runtime::measure::PROCESS,
        producer::METRICS,
        relay::METRICS,
        consumer::METRICS,
        outside::measures::METRICS,
    ];
    tables.into_iter().flatten().collect()
}

/// Every name in a text that looks like one of ours.
fn named(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    text.split(|letter| !is_part(letter))
        .filter(|word| {
            let prefix = word.split('_').next().unwrap_or_default();
            ["producer", "relay", "consumer"].contains(&prefix) && word.matches('_').count() >= 1
                || word.starts_with("ticketflow_")
        })
        .collect()
}

fn unknown(text: &str) -> Vec<&str> {
    let metrics = metrics();
    let is_known = |word: &&str| {
        metrics.iter().any(|metric| {
            let histogram = metric.kind == Kind::Histogram;
            let part = word.strip_prefix(metric.name);
            part == Some("") || histogram && matches!(part, Some("_bucket" | "_sum" | "_count"))
        })
    };
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

#[test]
fn every_histogram_is_asked_for_its_buckets_and_nothing_else_is() {
    for metric in metrics() {
        let bucket = format!("{}_bucket", metric.name);
        let asked = DASHBOARD.contains(&bucket) || ALERTS.contains(&bucket);
        if metric.kind != Kind::Histogram {
            assert!(!asked, "{bucket}");
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
