//! What was seen on the wire: first arrivals in their order, and copies.

use std::collections::HashMap;

use event::{Digest, Event, Identity};

/// One event on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The content it arrived with first.
    pub digest: Digest,
    /// Copies after the first.
    pub copies: u64,
    /// Whether a copy had another content.
    pub altered: bool,
}

/// Everything that was seen on the wire.
#[derive(Debug, Clone, Default)]
pub struct Wire {
    /// By identity.
    pub arrivals: HashMap<Identity, Arrival>,
    /// First arrivals that came before their predecessor in the same queue.
    pub out_of_order: Vec<String>,
    /// What could not be read as an event.
    pub malformed: Vec<String>,
    heads: HashMap<(String, String, String), i64>,
    /// What is tapped, as pool and binding pattern.
    covered: Vec<(String, String)>,
}

impl Wire {
    /// An empty wire that is tapped for these patterns of a pool.
    #[must_use]
    pub fn of(pool: &str, patterns: &[String]) -> Self {
        let mut wire = Self::default();
        wire.cover(pool, patterns);
        wire
    }

    /// Says that a pool is tapped too.
    pub fn cover(&mut self, pool: &str, patterns: &[String]) {
        let pairs = patterns
            .iter()
            .map(|pattern| (pool.to_owned(), pattern.clone()));
        self.covered.extend(pairs);
    }

    /// Whether an event would have been seen.
    #[must_use]
    pub fn covers(&self, pool: &str, event_type: &str) -> bool {
        let mut patterns = self.covered.iter().filter(|(tapped, _)| tapped == pool);
        patterns.any(|(_, pattern)| super::matches(pattern, event_type))
    }

    /// Takes in what arrived in a queue. `again` says that the broker has delivered this very
    /// message before: the reader lost its connection, and it is no copy.
    pub fn note(&mut self, queue: &str, event: &Event, again: bool) {
        let digest = Digest::of(event);
        if let Some(arrival) = self.arrivals.get_mut(&event.identity) {
            arrival.copies += u64::from(!again);
            arrival.altered |= arrival.digest != digest;
            return;
        }
        let arrival = Arrival {
            digest,
            copies: 0,
            altered: false,
        };
        self.arrivals.insert(event.identity.clone(), arrival);
        self.note_order(queue, event);
    }

    /// Takes in what is no event at all.
    pub fn note_malformed(&mut self, what: String) {
        self.malformed.push(what);
    }

    /// Copies beyond the first arrivals.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.arrivals.values().map(|arrival| arrival.copies).sum()
    }

    fn note_order(&mut self, queue: &str, event: &Event) {
        // Delayed events are outside the order.
        let Some(version) = event.version else {
            return;
        };
        let tenant = event.identity.tenant_id.to_string();
        let aggregate = format!(
            "{}/{}",
            event.aggregate.aggregate_type, event.aggregate.aggregate_id
        );
        let key = (queue.to_owned(), tenant, aggregate);
        let head = self.heads.entry(key.clone()).or_default();
        if version <= *head {
            let (queue, tenant, aggregate) = key;
            self.out_of_order.push(format!(
                "{tenant} {aggregate}: version {version} came after {head} in {queue}"
            ));
        }
        *head = version.max(*head);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use event::{Aggregate, Event, Identity, NewEvent};
    use uuid::Uuid;

    use super::Wire;

    pub(crate) fn event(number: u128, aggregate: &str, version: i64) -> Event {
        let new = NewEvent::json("acme", ("ticket", aggregate), "ticket.updated", "{}").unwrap();
        Event {
            identity: Identity {
                event_id: Uuid::from_u128(number),
                tenant_id: new.tenant_id,
                source: new.source,
            },
            aggregate: Aggregate { ..new.aggregate },
            version: Some(version),
            previous_version: Some(version - 1),
            event_type: new.event_type,
            content_type: new.content_type,
            payload: new.payload,
            headers: new.headers,
            trace_context: new.trace_context,
            occurred_at: chrono::DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn copies_are_counted_and_redeliveries_are_not() {
        let mut wire = Wire::default();
        let first = event(1, "a", 1);
        wire.note("q", &first, false);
        wire.note("q", &first, true);
        assert_eq!(wire.duplicates(), 0);
        wire.note("q", &first, false);
        assert_eq!(wire.duplicates(), 1);
        assert!(!wire.arrivals[&first.identity].altered);
        let mut other = first.clone();
        other.payload = "[]".into();
        wire.note("q", &other, false);
        assert!(wire.arrivals[&first.identity].altered);
    }

    #[test]
    fn only_first_arrivals_make_the_order() {
        let mut wire = Wire::default();
        let (one, two, three) = (event(1, "a", 1), event(2, "a", 2), event(3, "a", 3));
        wire.note("q", &one, false);
        wire.note("q", &three, false);
        wire.note("q", &one, false);
        wire.note("q", &event(9, "b", 1), false);
        assert!(wire.out_of_order.is_empty());
        wire.note("q", &two, false);
        assert_eq!(wire.out_of_order.len(), 1);
    }
}
