//! The last line of the demo.

use std::time::Duration;

use serde::Serialize;

use super::DemoOptions;
use crate::ledger::LedgerReport;

/// The result of a run, with the names that scripts rely on.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    committed: u64,
    published: u64,
    duplicates_on_wire: u64,
    effects: Effects,
    lost: usize,
    phantom: usize,
    doubled: usize,
    out_of_order: usize,
    seconds: f64,
    seed: u64,
    tickets: u32,
}

/// Receipts by effect.
#[derive(Debug, Clone, Serialize)]
struct Effects {
    notification: u64,
    search: u64,
    audit: u64,
}

impl Summary {
    pub(super) fn new(report: &LedgerReport, options: &DemoOptions, took: Duration) -> Self {
        let receipts = |effect| report.effects.get(effect).copied().unwrap_or(0);
        Self {
            committed: report.committed,
            published: report.published,
            duplicates_on_wire: report.duplicates_on_wire,
            effects: Effects {
                notification: receipts("notification"),
                search: receipts("search"),
                audit: receipts("audit"),
            },
            lost: report.lost.len(),
            phantom: report.phantom.len(),
            doubled: report.doubled.len(),
            out_of_order: report.out_of_order.len(),
            seconds: (took.as_secs_f64() * 10.0).round() / 10.0,
            seed: options.seed,
            tickets: options.tickets,
        }
    }

    /// Whether nothing is lost, invented, doubled or out of order.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        [self.lost, self.phantom, self.doubled, self.out_of_order] == [0; 4]
    }
}

impl std::fmt::Display for Summary {
    /// One JSON object.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| std::fmt::Error)?;
        formatter.write_str(&json)
    }
}
