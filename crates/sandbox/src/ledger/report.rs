//! What the ledger found.

use std::collections::BTreeMap;

/// How many examples of each kind are shown.
const SHOWN: usize = 5;

/// The judgement over a run: counts, and what is wrong, each with a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerReport {
    /// Events that were recorded.
    pub committed: u64,
    /// Of those, marked as published.
    pub published: u64,
    /// Copies on the wire beyond the first arrivals.
    pub duplicates_on_wire: u64,
    /// Receipts by effect.
    pub effects: BTreeMap<String, u64>,
    /// Committed and missing somewhere.
    pub lost: Vec<String>,
    /// There without a commit, or with another content or tenant than committed.
    pub phantom: Vec<String>,
    /// Effects applied more than once.
    pub doubled: Vec<String>,
    /// First arrivals or effects against the order of their aggregate.
    pub out_of_order: Vec<String>,
}

impl LedgerReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults().all(|(_, faults)| faults.is_empty())
    }

    /// What is wrong, by kind.
    pub fn faults(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        [
            ("lost", self.lost.as_slice()),
            ("phantom", &self.phantom),
            ("doubled", &self.doubled),
            ("out of order", &self.out_of_order),
        ]
        .into_iter()
    }

    /// The counts by the names that scripts rely on.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
        let fields = [
            ("committed", serde_json::json!(self.committed)),
            ("published", serde_json::json!(self.published)),
            (
                "duplicates_on_wire",
                serde_json::json!(self.duplicates_on_wire),
            ),
            ("effects", serde_json::json!(self.effects)),
            ("lost", serde_json::json!(self.lost.len())),
            ("phantom", serde_json::json!(self.phantom.len())),
            ("doubled", serde_json::json!(self.doubled.len())),
            ("out_of_order", serde_json::json!(self.out_of_order.len())),
        ];
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }
}

impl std::fmt::Display for LedgerReport {
    /// One line for each fault, a few of each kind; nothing if there is none.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (kind, faults) in self.faults() {
            for fault in faults.iter().take(SHOWN) {
                writeln!(formatter, "{kind}: {fault}")?;
            }
            if faults.len() > SHOWN {
                writeln!(formatter, "{kind}: and {} more", faults.len() - SHOWN)?;
            }
        }
        Ok(())
    }
}
