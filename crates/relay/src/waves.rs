//! The order of publishing within a batch: at most one unconfirmed event per aggregate at a time.

use std::collections::{HashMap, HashSet, VecDeque};

use event::PoolName;
use outbox::{ClaimedEvent, mutant};

/// A batch on its way out, as indices into its events.
#[derive(Debug)]
pub(crate) struct Waves {
    /// What waits for an earlier one of its aggregate, by the aggregate's number, in order.
    behind: Vec<VecDeque<usize>>,
    /// The aggregate's number of each event.
    aggregate_of: Vec<usize>,
    ready: Vec<usize>,
}

impl Waves {
    /// The events must be in the order of their positions.
    pub(crate) fn new(events: &[ClaimedEvent]) -> Self {
        let mut numbers = HashMap::new();
        let mut waves = Self {
            behind: Vec::new(),
            aggregate_of: Vec::with_capacity(events.len()),
            ready: Vec::new(),
        };
        for (index, event) in events.iter().enumerate() {
            let fresh = waves.behind.len();
            let number = if event.is_ordered && !mutant::is_planted(mutant::NO_WAVES) {
                let aggregate = (&event.key.tenant_id, &event.aggregate);
                *numbers.entry(aggregate).or_insert(fresh)
            } else {
                fresh
            };
            if number == fresh {
                waves.behind.push(VecDeque::new());
                waves.ready.push(index);
            } else if let Some(behind) = waves.behind.get_mut(number) {
                behind.push_back(index);
            }
            waves.aggregate_of.push(number);
        }
        waves
    }

    /// The events that may go out now; none when there is nothing left that may.
    pub(crate) fn next_wave(&mut self) -> Option<Vec<usize>> {
        let wave = std::mem::take(&mut self.ready);
        (!wave.is_empty()).then_some(wave)
    }

    /// An event was confirmed: the next one of its aggregate may go. Without this it never does.
    pub(crate) fn confirmed(&mut self, index: usize) {
        let number = self.aggregate_of.get(index).copied();
        let behind = number.and_then(|number| self.behind.get_mut(number));
        self.ready.extend(behind.and_then(VecDeque::pop_front));
    }

    /// Nothing more goes to these pools.
    pub(crate) fn stop_pools(&mut self, events: &[ClaimedEvent], stopped: &HashSet<PoolName>) {
        self.ready.retain(|index| {
            events
                .get(*index)
                .is_some_and(|event| !stopped.contains(&event.pool))
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outbox::{EventKey, LaneKey, Undecodable};
    use proptest::prelude::*;

    use super::*;

    fn event(aggregate: u8, position: i64, is_ordered: bool) -> ClaimedEvent {
        ClaimedEvent {
            key: EventKey {
                event_id: Default::default(),
                tenant_id: "t".to_owned(),
                source: "s".to_owned(),
            },
            lane: LaneKey {
                tenant_id: "t".to_owned(),
                lane: 0,
            },
            aggregate: ("ticket".to_owned(), aggregate.to_string()),
            position,
            is_ordered,
            pool: PoolName::parse("shared").unwrap(),
            attempts: 0,
            refused_for: None,
            age: Duration::ZERO,
            content: Err(Undecodable(String::new())),
        }
    }

    fn events(aggregates: &[u8]) -> Vec<ClaimedEvent> {
        let numbered = aggregates.iter().zip(1..);
        numbered
            .map(|(aggregate, position)| event(*aggregate, position, true))
            .collect()
    }

    #[test]
    fn each_wave_has_one_of_each_aggregate() {
        let mut waves = Waves::new(&events(&[1, 2, 1, 3, 1, 2]));
        for expected in [vec![0, 1, 3], vec![2, 5], vec![4]] {
            let wave = waves.next_wave().unwrap();
            assert_eq!(wave, expected);
            wave.into_iter().for_each(|index| waves.confirmed(index));
        }
        assert_eq!(waves.next_wave(), None);
    }

    #[test]
    fn an_event_that_is_not_confirmed_stops_its_aggregate_only() {
        let mut waves = Waves::new(&events(&[1, 2, 1, 2]));
        assert_eq!(waves.next_wave(), Some(vec![0, 1]));
        waves.confirmed(1);
        assert_eq!(waves.next_wave(), Some(vec![3]));
        assert_eq!(waves.next_wave(), None);
    }

    #[test]
    fn delayed_events_wait_for_nobody() {
        let batch = [event(1, 1, true), event(1, 2, false), event(1, 3, true)];
        let mut waves = Waves::new(&batch);
        assert_eq!(waves.next_wave(), Some(vec![0, 1]));
        waves.confirmed(1);
        assert_eq!(waves.next_wave(), None);
    }

    #[test]
    fn a_pool_that_takes_nothing_is_left_out() {
        let mut batch = events(&[1, 2]);
        batch[1].pool = PoolName::parse("other").unwrap();
        let mut waves = Waves::new(&batch);
        waves.stop_pools(&batch, &HashSet::from([batch[0].pool.clone()]));
        assert_eq!(waves.next_wave(), Some(vec![1]));
    }

    proptest! {
        #[test]
        fn whatever_is_confirmed_no_event_goes_before_its_predecessor_is(
            aggregates in proptest::collection::vec(0_u8..5, 0..40),
            answers in proptest::collection::vec(any::<bool>(), 40),
        ) {
            let batch = events(&aggregates);
            let mut waves = Waves::new(&batch);
            let mut confirmed = vec![false; batch.len()];
            while let Some(wave) = waves.next_wave() {
                for index in &wave {
                    let earlier = (0..*index).filter(|other| aggregates[*other] == aggregates[*index]);
                    for other in earlier {
                        prop_assert!(confirmed[other], "{index} went before {other}");
                    }
                }
                for index in wave {
                    if answers[index] {
                        confirmed[index] = true;
                        waves.confirmed(index);
                    }
                }
            }
            for (index, is_confirmed) in confirmed.iter().enumerate() {
                let earlier_refused = (0..index)
                    .any(|other| aggregates[other] == aggregates[index] && !answers[other]);
                prop_assert_eq!(*is_confirmed, answers[index] && !earlier_refused);
            }
        }
    }
}
