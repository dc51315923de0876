//! A circuit for each pool: when its destination refuses, one event at a time asks again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use event::PoolName;
use outbox::{EventKey, LaneKey};
use runtime::backoff::Backoff;

use crate::metrics;

const FIRST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(5);
/// A probe that nothing was heard of for so long will not be heard of.
const UNDER_WAY: Duration = Duration::from_secs(60);

/// The event that asks whether a pool's destination takes something again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The pool.
    pub pool: PoolName,
    /// The event that was refused; any event of the pool if that one is gone.
    pub event: Option<(EventKey, LaneKey)>,
}

/// A pool whose destination refuses. There is none for a pool that takes events.
#[derive(Debug)]
struct Open {
    probe: Option<(EventKey, LaneKey)>,
    reason: String,
    backoff: Backoff,
    /// When the next probe goes.
    next: Instant,
}

/// The circuits of all pools of this process.
#[derive(Debug, Default)]
pub struct Circuits(Mutex<BTreeMap<PoolName, Open>>);

impl Circuits {
    /// An event was refused by its destination: nothing but this event goes there from now on. The
    /// first one stays the probe, since queues that are well may take another type.
    pub(crate) fn refused(&self, pool: &PoolName, event: (&EventKey, &LaneKey), reason: &str) {
        let mut circuits = self.lock();
        let open = circuits.entry(pool.clone()).or_insert_with(|| {
            tracing::warn!(%pool, reason, "the pool's destination refuses; probing it");
            metrics::circuit(pool, true);
            Open {
                probe: None,
                reason: reason.to_owned(),
                backoff: Backoff::new(FIRST, MOST),
                next: Instant::now(),
            }
        });
        let probe = open
            .probe
            .get_or_insert_with(|| (event.0.clone(), event.1.clone()));
        if probe.0 == *event.0 {
            open.next = Instant::now() + open.backoff.next_delay();
        }
    }

    /// An event of the pool was confirmed. Only a probe's counts while the circuit is open: other
    /// events still under way may have gone to queues that are well.
    pub(crate) fn confirmed(&self, pool: &PoolName, event: &EventKey) {
        let mut circuits = self.lock();
        if is_probe(&circuits, pool, event) {
            circuits.remove(pool);
            tracing::info!(%pool, "the pool's destination takes events again");
            metrics::circuit(pool, false);
        }
    }

    /// The pools that take nothing but a probe.
    pub(crate) fn open(&self) -> Vec<PoolName> {
        self.lock().keys().cloned().collect()
    }

    /// Whether every pool takes events.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().is_empty()
    }

    /// The pools that refuse, with what they said.
    pub(crate) fn reasons(&self) -> Vec<(PoolName, String)> {
        let circuits = self.lock();
        circuits
            .iter()
            .map(|(pool, open)| (pool.clone(), open.reason.clone()))
            .collect()
    }

    /// A probe that is due, if any: one at a time.
    pub(crate) fn due(&self) -> Option<Probe> {
        let now = Instant::now();
        let mut circuits = self.lock();
        let (pool, open) = circuits.iter_mut().find(|(_, open)| open.next <= now)?;
        open.next = now + UNDER_WAY;
        Some(Probe {
            pool: pool.clone(),
            event: open.probe.clone(),
        })
    }

    /// The probe of this pool has told nothing: the link broke, or another relay has its lane. With
    /// `is_gone` it cannot be claimed any more, and the next one may be any event of the pool.
    pub(crate) fn missed(&self, pool: &PoolName, is_gone: bool) {
        if let Some(open) = self.lock().get_mut(pool) {
            if is_gone {
                open.probe = None;
            }
            open.next = Instant::now() + open.backoff.next_delay();
        }
    }

    /// Nothing was learnt of the destination from this event: the link broke under it, it was not
    /// sent, or with `is_gone` it was the event's own fault. If it was the probe, the next one goes
    /// soon; the time for which one may be under way is for those that nothing is ever heard of.
    pub(crate) fn untold(&self, pool: &PoolName, event: &EventKey, is_gone: bool) {
        if is_probe(&self.lock(), pool, event) {
            self.missed(pool, is_gone);
        }
    }

    /// This event is the probe now, the former one being gone.
    pub(crate) fn probing(&self, pool: &PoolName, event: (&EventKey, &LaneKey)) {
        if let Some(open) = self.lock().get_mut(pool) {
            open.probe = Some((event.0.clone(), event.1.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PoolName, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_probe(circuits: &BTreeMap<PoolName, Open>, pool: &PoolName, event: &EventKey) -> bool {
    let probe = circuits.get(pool).and_then(|open| open.probe.as_ref());
    probe.is_some_and(|(key, _)| key == event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> PoolName {
        PoolName::parse("shared").unwrap()
    }

    fn key(source: &str) -> (EventKey, LaneKey) {
        let event = EventKey {
            event_id: Default::default(),
            tenant_id: "t".to_owned(),
            source: source.to_owned(),
        };
        let lane = LaneKey {
            tenant_id: "t".to_owned(),
            lane: 3,
        };
        (event, lane)
    }

    fn refuse(circuits: &Circuits, source: &str) {
        let (event, lane) = key(source);
        circuits.refused(&pool(), (&event, &lane), "nack");
    }

    fn due(circuits: &Circuits) -> Probe {
        loop {
            if let Some(probe) = circuits.due() {
                return probe;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_first_refused_event_is_the_only_probe_until_it_is_confirmed() {
        let circuits = Circuits::default();
        assert!(circuits.open().is_empty() && circuits.due().is_none());
        refuse(&circuits, "first");
        refuse(&circuits, "second");
        assert_eq!(circuits.open(), [pool()]);
        let probe = due(&circuits);
        assert_eq!(probe.event, Some(key("first")));
        assert_eq!(circuits.due(), None, "one at a time");
        circuits.confirmed(&pool(), &key("second").0);
        assert_eq!(
            circuits.open(),
            [pool()],
            "a healthy queue took another type"
        );
        refuse(&circuits, "first");
        assert_eq!(due(&circuits).event, Some(key("first")));
        circuits.confirmed(&pool(), &key("first").0);
        assert!(circuits.open().is_empty());
    }

    #[test]
    fn a_probe_that_is_gone_makes_room_for_any_other() {
        let circuits = Circuits::default();
        refuse(&circuits, "first");
        due(&circuits);
        circuits.missed(&pool(), false);
        assert_eq!(
            due(&circuits).event,
            Some(key("first")),
            "its lane was busy"
        );
        circuits.missed(&pool(), true);
        assert_eq!(due(&circuits).event, None);
        let (event, lane) = key("another");
        circuits.probing(&pool(), (&event, &lane));
        circuits.confirmed(&pool(), &event);
        assert!(circuits.open().is_empty());
    }

    #[test]
    fn a_probe_that_the_link_broke_under_goes_again_and_another_event_changes_nothing() {
        let circuits = Circuits::default();
        refuse(&circuits, "first");
        due(&circuits);
        circuits.untold(&pool(), &key("second").0, false);
        assert_eq!(circuits.due(), None, "the probe is still under way");
        circuits.untold(&pool(), &key("first").0, false);
        assert_eq!(due(&circuits).event, Some(key("first")));
        circuits.untold(&pool(), &key("first").0, true);
        assert_eq!(due(&circuits).event, None, "it was parked");
    }
}
