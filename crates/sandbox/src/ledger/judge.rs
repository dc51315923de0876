//! Judging a run by its facts alone.

use std::collections::HashMap;

use event::Identity;

use super::Committed;
use super::facts::{Facts, OutboxRow};
use super::report::LedgerReport;
use super::wire::Wire;

/// The effects whose own rows are checked beside their receipts.
const NOTIFICATION: &str = "notification";
const AUDIT: &str = "audit";
const SEARCH: &str = "search";

/// Puts all sources side by side and says what does not fit.
#[must_use]
pub fn judge(committed: &Committed, facts: &Facts, wire: &Wire) -> LedgerReport {
    let mut judgement = Judgement {
        committed,
        facts,
        wire,
        report: counts(facts, wire),
    };
    judgement.driver();
    for (event, row) in &facts.outbox {
        judgement.row(event, row);
    }
    judgement.on_the_wire();
    judgement.receipts();
    judgement.rows_of_effect(NOTIFICATION, facts.tasks.iter().map(|(event, _)| event));
    judgement.rows_of_effect(AUDIT, facts.audit.iter().map(|entry| &entry.event));
    judgement.audit_order();
    judgement.documents();
    judgement.report
}

struct Judgement<'a> {
    committed: &'a Committed,
    facts: &'a Facts,
    wire: &'a Wire,
    report: LedgerReport,
}

fn counts(facts: &Facts, wire: &Wire) -> LedgerReport {
    let published = facts.outbox.values().filter(|row| row.state == "published");
    let receipts = |effect: &String| {
        let of_effect = facts.receipts.get(effect).map_or(0, HashMap::len);
        (effect.clone(), of_effect as u64)
    };
    let effects = facts.takes.iter().map(|takes| &takes.effect);
    LedgerReport {
        committed: facts.outbox.len() as u64,
        published: published.count() as u64,
        duplicates_on_wire: wire.duplicates(),
        effects: effects.chain(facts.receipts.keys()).map(receipts).collect(),
        ..LedgerReport::default()
    }
}

impl Judgement<'_> {
    /// What the driver was told is in the outbox, as it was told.
    fn driver(&mut self) {
        for (event, (aggregate, version)) in &self.committed.events {
            match self.facts.outbox.get(event) {
                None => self.lost(event, "was answered as committed and is not recorded"),
                Some(row) if &row.aggregate != aggregate || row.version != Some(*version) => {
                    self.phantom(event, "is recorded with another aggregate or version");
                }
                Some(_) => {}
            }
        }
    }

    /// What is recorded is published, on the wire, and applied, with the same content.
    fn row(&mut self, event: &Identity, row: &OutboxRow) {
        let known =
            self.committed.events.contains_key(event) || self.committed.unknown.contains(event);
        if self.committed.complete && !known {
            self.phantom(event, "is recorded and nobody was told so");
        }
        match row.state.as_str() {
            "published" => self.published(event, row),
            "parked" | "skipped" if self.committed.may_wait => {}
            state => self.lost(event, &format!("is still {state}")),
        }
    }

    fn published(&mut self, event: &Identity, row: &OutboxRow) {
        match self.wire.arrivals.get(event) {
            None if self.wire.covers(&row.pool, &row.event_type) => {
                self.lost(event, "is marked published and never was on the wire");
            }
            Some(arrival) if arrival.altered || arrival.digest.as_bytes()[..] != row.digest => {
                self.phantom(event, "was on the wire with another content");
            }
            None | Some(_) => {}
        }
        for effect in self.facts.effects_of(row) {
            let receipt = self.facts.receipts.get(effect).and_then(|of| of.get(event));
            let waits = || {
                self.facts
                    .waiting
                    .contains(&(effect.to_owned(), event.clone()))
            };
            match receipt {
                Some(digest) if digest != &row.digest => {
                    self.phantom(
                        event,
                        &format!("was applied by {effect} with another content"),
                    );
                }
                Some(_) => {}
                None if self.committed.may_wait && waits() => {}
                None => self.lost(event, &format!("has no receipt of {effect}")),
            }
        }
    }

    fn on_the_wire(&mut self) {
        for event in self.wire.arrivals.keys() {
            if !self.facts.outbox.contains_key(event) {
                self.phantom(event, "was on the wire and is not recorded");
            }
        }
        let malformed = self.wire.malformed.iter().cloned();
        self.report.phantom.extend(malformed);
        let disordered = self.wire.out_of_order.iter().cloned();
        self.report.out_of_order.extend(disordered);
    }

    fn receipts(&mut self) {
        for (effect, receipts) in &self.facts.receipts {
            for event in receipts
                .keys()
                .filter(|event| !self.facts.outbox.contains_key(event))
            {
                self.phantom(
                    event,
                    &format!("was applied by {effect} and is not recorded"),
                );
            }
        }
    }

    /// One row for each receipt of an effect that writes one.
    fn rows_of_effect<'a>(&mut self, effect: &str, rows: impl Iterator<Item = &'a Identity>) {
        let mut written: HashMap<&Identity, u64> = HashMap::new();
        for event in rows {
            *written.entry(event).or_default() += 1;
        }
        let none = HashMap::new();
        let receipts = self.facts.receipts.get(effect).unwrap_or(&none);
        for event in receipts.keys().filter(|event| !written.contains_key(event)) {
            self.lost(
                event,
                &format!("has a receipt of {effect} and nothing was done"),
            );
        }
        for (event, times) in written {
            if times > 1 {
                let words = format!("{}: {effect} did it {times} times", name(event));
                self.report.doubled.push(words);
            }
            if !receipts.contains_key(event) {
                self.phantom(event, &format!("was done by {effect} without a receipt"));
            }
        }
    }

    fn audit_order(&mut self) {
        let mut heads: HashMap<(&str, &str), i64> = HashMap::new();
        for entry in &self.facts.audit {
            let Some(version) = entry.version else {
                continue;
            };
            let tenant = entry.event.tenant_id.as_str();
            let head = heads.entry((tenant, &entry.aggregate)).or_default();
            if version < *head {
                self.report.out_of_order.push(format!(
                    "{tenant} {}: audit has version {version} after {head}",
                    entry.aggregate
                ));
            }
            *head = version.max(*head);
        }
    }

    /// The search effect has the newest version of each ticket that it knows of.
    fn documents(&mut self) {
        if !self.facts.receipts.contains_key(SEARCH) {
            return;
        }
        for ((tenant, ticket), version) in &self.facts.tickets {
            match self.facts.documents.get(&(tenant.clone(), ticket.clone())) {
                Some(found) if found < version => self.report.out_of_order.push(format!(
                    "{tenant} ticket/{ticket}: search has version {found}, the ticket {version}"
                )),
                Some(_) => {}
                None if self.committed.may_wait => {}
                None => {
                    let words = format!("{tenant} ticket/{ticket}: search has no document");
                    self.report.lost.push(words);
                }
            }
        }
    }

    fn lost(&mut self, event: &Identity, what: &str) {
        self.report.lost.push(format!("{} {what}", name(event)));
    }

    fn phantom(&mut self, event: &Identity, what: &str) {
        self.report.phantom.push(format!("{} {what}", name(event)));
    }
}

fn name(event: &Identity) -> String {
    format!("{} {} {}", event.tenant_id, event.source, event.event_id)
}

#[cfg(test)]
mod tests {
    use event::{Digest, Event};

    use super::*;
    use crate::ledger::facts::{AuditEntry, Takes};
    use crate::ledger::wire::tests::event;

    fn run() -> (Committed, Facts, Wire) {
        let mut facts = Facts {
            takes: [NOTIFICATION, SEARCH, AUDIT].map(takes).to_vec(),
            ..Facts::default()
        };
        let mut committed = Committed {
            complete: true,
            ..Committed::default()
        };
        let mut wire = Wire::of("shared", &["ticket.#".to_owned()]);
        for (number, version) in [(1, 1), (2, 2)] {
            let event = event(number, "a", version);
            add(&event, &mut facts);
            let told = ("ticket/a".to_owned(), version);
            committed.events.insert(event.identity.clone(), told);
            wire.note("q", &event, false);
        }
        let ticket = ("acme".to_owned(), "a".to_owned());
        facts.documents.insert(ticket.clone(), 2);
        facts.tickets.insert(ticket, 2);
        (committed, facts, wire)
    }

    fn takes(effect: &str) -> Takes {
        Takes {
            pool: "shared".to_owned(),
            effect: effect.to_owned(),
            patterns: vec!["ticket.#".to_owned()],
        }
    }

    fn add(event: &Event, facts: &mut Facts) {
        let digest = Digest::of(event).as_bytes().to_vec();
        let row = OutboxRow {
            aggregate: "ticket/a".to_owned(),
            version: event.version,
            event_type: event.event_type.to_string(),
            state: "published".to_owned(),
            pool: "shared".to_owned(),
            digest: digest.clone(),
        };
        facts.outbox.insert(event.identity.clone(), row);
        for effect in [NOTIFICATION, SEARCH, AUDIT] {
            let receipts = facts.receipts.entry(effect.to_owned()).or_default();
            receipts.insert(event.identity.clone(), digest.clone());
        }
        facts.tasks.push((event.identity.clone(), "a".to_owned()));
        facts.audit.push(AuditEntry {
            event: event.identity.clone(),
            aggregate: "ticket/a".to_owned(),
            version: event.version,
        });
    }

    /// Judges a clean run after a lie was planted; gives the four counts.
    fn judged(plant: impl FnOnce(&mut Committed, &mut Facts, &mut Wire)) -> [usize; 4] {
        let (mut committed, mut facts, mut wire) = run();
        plant(&mut committed, &mut facts, &mut wire);
        let report = judge(&committed, &facts, &wire);
        let counts: Vec<usize> = report.faults().map(|(_, faults)| faults.len()).collect();
        counts.try_into().unwrap()
    }

    fn second() -> Identity {
        event(2, "a", 2).identity
    }

    #[test]
    fn a_clean_run_is_clean_and_counted() {
        let (committed, facts, wire) = run();
        let report = judge(&committed, &facts, &wire);
        assert!(report.is_clean(), "{report}");
        assert_eq!((report.committed, report.published), (2, 2));
        assert_eq!(report.effects[SEARCH], 2);
        assert_eq!(report.to_json()["lost"], 0);
    }

    #[test]
    fn what_is_missing_anywhere_is_lost() {
        let missing = [
            judged(|_, facts, _| facts.outbox.get_mut(&second()).unwrap().state = "pending".into()),
            judged(|_, facts, _| facts.outbox.get_mut(&second()).unwrap().state = "parked".into()),
            judged(|_, _, wire| wire.arrivals.retain(|event, _| *event != second())),
            judged(|_, facts, _| drop(facts.documents.drain())),
            judged(|_, facts, _| drop(facts.tasks.pop())),
            judged(|_, facts, _| drop(facts.audit.pop())),
            judged(|_, facts, _| drop(facts.receipts.get_mut(SEARCH).unwrap().remove(&second()))),
        ];
        assert_eq!(missing, [[1, 0, 0, 0]; 7]);
        let told = judged(|committed, _, _| {
            let third = event(3, "a", 3).identity;
            committed.events.insert(third, ("ticket/a".to_owned(), 3));
        });
        assert_eq!(told, [1, 0, 0, 0]);
    }

    #[test]
    fn what_was_not_committed_is_a_phantom() {
        let untold = judged(|committed, _, _| drop(committed.events.remove(&second())));
        assert_eq!(untold, [0, 1, 0, 0]);
        let unknown = judged(|committed, _, _| {
            committed.events.remove(&second());
            committed.unknown.insert(second());
        });
        assert_eq!(unknown, [0; 4]);
        let unrecorded = judged(|_, _, wire| wire.note("q", &event(3, "a", 3), false));
        assert_eq!(unrecorded, [0, 1, 0, 0]);
        let without_receipt = judged(|_, facts, _| {
            let third = event(3, "a", 3).identity;
            facts.tasks.push((third, "a".to_owned()));
        });
        assert_eq!(without_receipt, [0, 1, 0, 0]);
    }

    #[test]
    fn another_content_is_a_phantom() {
        let received = judged(|_, facts, _| {
            let receipts = facts.receipts.get_mut(AUDIT).unwrap();
            receipts.insert(second(), vec![0; 32]);
        });
        assert_eq!(received, [0, 1, 0, 0]);
        let sent = judged(|_, _, wire| {
            let mut other = event(2, "a", 2);
            other.payload = "[]".into();
            wire.note("q", &other, false);
        });
        assert_eq!(sent, [0, 1, 0, 0]);
        let malformed = judged(|_, _, wire| wire.note_malformed("no id".to_owned()));
        assert_eq!(malformed, [0, 1, 0, 0]);
    }

    #[test]
    fn an_effect_twice_is_doubled() {
        let task = judged(|_, facts, _| facts.tasks.push(facts.tasks[1].clone()));
        let entry = judged(|_, facts, _| facts.audit.push(facts.audit[1].clone()));
        assert_eq!([task, entry], [[0, 0, 1, 0]; 2]);
    }

    #[test]
    fn order_is_held_on_the_wire_and_by_the_effects() {
        let wire = judged(|_, _, wire| {
            *wire = Wire::of("shared", &["ticket.#".to_owned()]);
            wire.note("q", &event(2, "a", 2), false);
            wire.note("q", &event(1, "a", 1), false);
        });
        let audit = judged(|_, facts, _| facts.audit.swap(0, 1));
        let search = judged(|_, facts, _| {
            facts
                .documents
                .values_mut()
                .for_each(|version| *version = 1);
        });
        assert_eq!([wire, audit, search], [[0, 0, 0, 1]; 3]);
    }

    #[test]
    fn what_waits_is_not_lost_where_waiting_is_allowed() {
        let waits = |may_wait| {
            judged(|committed, facts, _| {
                committed.may_wait = may_wait;
                let receipts = facts.receipts.get_mut(AUDIT).unwrap();
                receipts.remove(&second());
                facts.audit.pop();
                facts.waiting.insert((AUDIT.to_owned(), second()));
            })
        };
        assert_eq!(waits(false), [1, 0, 0, 0]);
        assert_eq!(waits(true), [0; 4]);
    }
}
